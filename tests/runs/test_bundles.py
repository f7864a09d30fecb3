"""Runs side by side, and seeds together."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import regionscope as rs
from regionscope.plots.curves import compared_runs
from regionscope.runs.bundles import bundles_as_rows, bundles_of


def recorded(path: Path, values: dict[int, float], stderr: float | None = 0.5, **settings: object) -> rs.Run:
    """A run of one measure, as training writes it."""
    config = {"training": settings, "measures": {"boundary_crossings": {"radius": 0.1, "directions": 3}}}
    run = rs.Run.create(path, config)
    for step, value in values.items():
        found = {"boundary_crossings": {"mean": value, "stderr": stderr}}
        run.record(rs.Record(step, {"loss": 2 * value}, {"train": found}))
    run.close()
    return rs.Run.open(path)


def test_runs_that_differ_in_their_seed_only_are_one_curve_with_a_band(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4))
    runs = [
        recorded(tmp_path / f"seed{k}", dict(zip((0, 1, 2, 5), row, strict=True)), seed=k, width=8)
        for k, row in enumerate(values)
    ]
    other = recorded(tmp_path / "wide", {0: 1.0, 5: 2.0}, seed=0, width=9)
    together, alone = bundles_of([*runs, other], "train/boundary_crossings")
    assert (together.name, alone.name) == ("width 8, 3 seeds", str(tmp_path / "wide"))
    np.testing.assert_allclose(together.mean, values.mean(axis=0))
    assert together.stderr is not None and alone.stderr is not None
    spread = [sum((x - sum(v) / 3) ** 2 for x in v) / 2 for v in values.T]  # the unbiased variance, by hand
    np.testing.assert_allclose(together.stderr, np.sqrt(np.array(spread) / 3))
    np.testing.assert_array_equal(alone.stderr, [0.5, 0.5])
    rows = bundles_as_rows([together, alone])
    assert [row["step"] for row in rows] == [0, 1, 2, 5]
    assert alone.name not in rows[1] and rows[3][alone.name] == 2.0


def test_seeds_are_compared_where_all_of_them_recorded(tmp_path: Path) -> None:
    runs = [recorded(tmp_path / f"{k}", {0: k, 3: k, 7 + k: 1.0}, seed=k) for k in range(2)]
    (bundle,) = bundles_of(runs, "loss")
    assert bundle.steps == (0, 3) and bundle.name == "2 seeds"
    apart = [recorded(tmp_path / f"apart{k}", {k: 1.0}, seed=k) for k in range(2)]
    with pytest.raises(ValueError, match="have no step with loss in common"):
        bundles_of(apart, "loss")
    with pytest.raises(KeyError, match="has no values for 'mood'"):
        bundles_of(runs, "mood")


def test_a_seed_that_is_repeated_counts_once(tmp_path: Path) -> None:
    short, long, other = (
        recorded(tmp_path / name, values, seed=seed)
        for name, values, seed in (
            ("short", {0: 1.0}, 0),
            ("long", {0: 1.0, 3: 2.0}, 0),
            ("other", {0: 3.0, 3: 6.0}, 1),
        )
    )
    (alone,) = bundles_of([short, long], "train/boundary_crossings")
    assert (alone.name, alone.paths, alone.repeats) == (str(long.path), (long.path,), (short.path,))
    assert alone.stderr is not None and alone.stderr.tolist() == [0.5, 0.5], "what the run recorded, not a spread of 0"
    (two,) = bundles_of([short, long, other], "loss")
    assert two.name == "2 seeds" and two.repeats == (short.path,) and two.mean.tolist() == [4.0, 8.0]
    np.testing.assert_allclose(np.asarray(two.stderr), [2.0, 4.0])


def test_runs_whose_training_is_not_known_stay_apart(tmp_path: Path) -> None:
    runs: list[rs.Run] = []
    for name in "ab":
        run = rs.Run.create(tmp_path / name, {"seed": 0})  # a monitor's, of its measures
        run.record(rs.Record(0, {"loss": 1.0}))
        run.close()
        runs.append(rs.Run.open(run.path))
    bundles = bundles_of(runs, "loss")
    assert [bundle.paths for bundle in bundles] == [(run.path,) for run in runs]
    assert not any(bundle.repeats for bundle in bundles)


def test_what_is_recorded_names_runs_only_if_nothing_else_does(tmp_path: Path) -> None:
    runs = [
        recorded(tmp_path / f"{points}-{seed}", {0: 1.0}, width=width, points=points, activation=name, seed=seed)
        for width, points, name in ((3, 5, "relu"), (4, 6, "gelu"), (4, 7, "gelu"))
        for seed in range(2)
    ]
    names = [bundle.name for bundle in bundles_of(runs, "train/boundary_crossings")]
    long = "width 4, points {}, activation gelu, 2 seeds"
    assert names == ["width 3, activation relu, 2 seeds", long.format(6), long.format(7)]
    drawn = compared_runs(bundles_of(runs, "train/boundary_crossings"))
    legend = drawn.get_legend()
    assert legend is not None and legend.get_texts()[0].get_text() == "width 3, activation\nrelu, 2 seeds"
    plt.close("all")


def _explained(ax: Axes) -> str:
    """What the legend says last."""
    legend = ax.get_legend()
    assert legend is not None
    return legend.get_texts()[-1].get_text()


def test_compared_runs_are_drawn_with_their_bands_and_options(tmp_path: Path) -> None:
    plt.switch_backend("agg")
    runs = [recorded(tmp_path / f"{k}", {0: k, 3: k + 1.0}, seed=k % 2, width=k // 2) for k in range(3)]
    ax = compared_runs(bundles_of(runs, "train/boundary_crossings"))
    assert ax.get_ylabel() == "boundary crossings at train\nradius 0.1, directions 3"
    assert [line.get_label() for line in ax.lines] == ["width 0, 2 seeds", str(tmp_path / "2")]
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), float), [0.5, 1.5])
    assert len(ax.collections) == 2
    assert _explained(ax) == "± standard error\nover seeds or points"
    plt.close("all")


def test_a_run_draws_a_measure_at_its_probes_or_a_column(tmp_path: Path) -> None:
    plt.switch_backend("agg")
    run = recorded(tmp_path / "run", {0: 3.0, 1: 2.0, 5: 1.0})
    for what, label, values in (
        (None, "boundary crossings\nradius 0.1, directions 3", [3, 2, 1]),
        ("train/boundary_crossings", "boundary crossings at train\nradius 0.1, directions 3", [3, 2, 1]),
        ("loss", "loss", [6, 4, 2]),
    ):
        ax = run.plot(what)
        assert ax.get_ylabel() == label
        assert what == "loss" or _explained(ax) == "± standard error\nover points"
        np.testing.assert_array_equal(np.asarray(ax.lines[0].get_ydata(), float), values)
    axes = plt.figure().subplots()
    assert run.plot("loss", axes) is axes
    with pytest.raises(ValueError, match="recorded no 'mood'; it has boundary_crossings, loss"):
        run.plot("mood")
    plt.close("all")
