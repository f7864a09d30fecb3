"""Training runs: what they record, and that no fault costs more than the time since the last step."""

import json
import math
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from faults import full_disk
from processes import forked
from torch import Tensor
from tqdm import tqdm

import regionscope as rs
from regionscope.runs.run import run_state
from regionscope.training import loop as training
from regionscope.training.config import LOSSES, Training, digest, new_model, new_optimiser, new_penalty, training_data
from regionscope.training.loop import (
    TrainingFailed,
    batch,
    resume,
    run_config,
    run_model,
    save_or_warn,
    train,
)

SMALL = Training(
    size=200, test_size=100, depth=2, width=16, batch_size=32, steps=200, records=10, points=8,
    measures=("total_variation", "good_units"),
)  # fmt: skip


def records(run: rs.Run) -> dict[int, Any]:
    """All that was recorded but how long it took: measures and weights."""
    found = {}
    for step in run.steps:
        record = replace(run.read(step), seconds=None)
        found[step] = (record, {name: w.numpy().tobytes() for name, w in run.weights(step).items()})
    return found


def test_a_run_records_scores_measures_and_weights(tmp_path: Path) -> None:
    run = train(SMALL, tmp_path / "run")
    assert run.steps == rs.log_steps(200, 10)
    last, losses = run.read(200), run.curve("loss")[1]
    assert losses[-1] < losses[0]
    assert run.curve("train_accuracy")[1][-1] > 0.9
    assert set(last.probes) == {"train", "test", "uniform"}
    assert set(last.probes["test"]) == {"total_variation", "good_units"}
    assert run.status["state"] == run_state(run) == "finished"
    assert run.status["test_accuracy"] == last.scalars["test_accuracy"]
    assert run_config(rs.Run.open(tmp_path / "run")) == SMALL
    x, y = training_data(SMALL).train
    assert float((run_model(run)(x).argmax(dim=1) == y).float().mean()) == pytest.approx(run.status["train_accuracy"])
    assert records(resume(tmp_path / "run")) == records(run)


@pytest.mark.parametrize(
    "changed",
    [
        {"optimiser": "sgd", "weight_decay": 0.1},
        {"optimiser": "momentum", "loss": "mse", "label_noise": 0.5},
        {"optimiser": "adam", "activation": "gelu", "init": "he", "init_scale": 2.0},
        {"model": "cnn", "width": 2, "batch_norm": True, "size": 64, "test_size": 20, "points": 2, "steps": 30},
        {"dataset": "gaussians", "loss": "mse"},
        {"dtype": "float64", "replacement": True, "decay": "weights"},
        {"loss": "softmax-cross-entropy", "init": "lc-script"},
        {"penalty": 1e-3, "activation": "maxout", "width": 6},
        {"dataset": "modular-addition", "model": "transformer", "depth": 1, "width": 32},
    ],
    ids=lambda changed: next(iter(changed.values())),
)
def test_a_run_in_pieces_equals_a_run_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    config = replace(SMALL, **{"steps": 60, "records": 6, **changed})
    whole = train(config, tmp_path / "whole")
    steps = iter([17, 1, 29, 10**9])
    left = [next(steps)]
    step = training._take_step

    def interrupted(*arguments: Any) -> float:
        left[0] -= 1
        if left[0] < 0:
            left[0] = next(steps)
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(training, "_take_step", interrupted)
    torch.manual_seed(5)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "pieces", save_every=0)
    while run_state(rs.Run.open(tmp_path / "pieces")) != "finished":
        torch.rand(3)  # what else happens in a process does not matter
        try:
            resume(tmp_path / "pieces", save_every=0)
        except KeyboardInterrupt:
            assert run_state(rs.Run.open(tmp_path / "pieces")) == "killed"
    pieces = rs.Run.open(tmp_path / "pieces")
    assert records(pieces) == records(whole)
    for a, b in zip(final_tensors(pieces), final_tensors(whole), strict=True):
        assert torch.equal(a, b)


def final_tensors(run: rs.Run) -> list[Tensor]:
    state = run.latest_state()
    assert state is not None
    return [state[1][name] for name in sorted(state[1])]


def test_weights_that_are_as_good_as_zero_become_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors compute ten times slower with numbers below the smallest normal float."""
    made = new_model

    def with_faint_weights(*about: Any) -> torch.nn.Module:
        model = made(*about)
        with torch.no_grad():
            for p in model.parameters():
                p[0] = 1e-39
                p[1] = 1e-29
        return model

    monkeypatch.setattr(training, "new_model", with_faint_weights)
    config = replace(SMALL, optimiser="sgd", lr=0.0, steps=101, records=2, measures=())
    run = train(config, tmp_path / "run")
    for weights in run.weights(101).values():
        assert not weights[0].any() and bool((weights[1] == 1e-29).all())


def test_what_decays_are_all_parameters_or_the_weights_only() -> None:
    config = replace(SMALL, optimiser="sgd", lr=0.5, weight_decay=0.1)
    for all_of_it, biases in ((config, 0.95), (replace(config, decay="weights"), 1.0)):
        model = new_model(all_of_it, (784,), 10)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimiser = new_optimiser(all_of_it, model)
        sum(0 * p.sum() for p in model.parameters()).backward()  # type: ignore[union-attr]
        optimiser.step()
        for name, p in model.named_parameters():
            factor = 0.95 if name.endswith("weight") else biases
            assert torch.allclose(p, factor * before[name])


def test_a_softmax_twice_is_the_loss_of_softmax_outputs() -> None:
    outputs, classes = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    shares = outputs.exp() / outputs.exp().sum(dim=1, keepdim=True)
    wanted = -(shares.exp() / shares.exp().sum(dim=1, keepdim=True))[torch.arange(5), classes].log().mean()
    assert torch.allclose(LOSSES["softmax-cross-entropy"](outputs, classes), wanted)
    assert not torch.allclose(LOSSES["cross-entropy"](outputs, classes), wanted)


def test_a_penalty_lowers_local_complexity_and_is_no_part_of_the_loss_that_is_told(tmp_path: Path) -> None:
    plain, penalised = (
        train(replace(SMALL, penalty=penalty, measures=("local_complexity",)), tmp_path / f"{penalty}")
        for penalty in (0.0, 1e-2)
    )
    ends = [run.curve("train/local_complexity")[1][-1] for run in (plain, penalised)]
    assert ends[1] < 0.7 * ends[0]
    x, y = training_data(SMALL).train
    with torch.no_grad():
        assert penalised.status["loss"] == pytest.approx(float(LOSSES["cross-entropy"](run_model(penalised)(x), y)))


def test_a_penalty_is_local_complexity_drawn_by_seed_and_step() -> None:
    config, x = replace(SMALL, penalty=2.0, depth=1), training_data(SMALL).train[0][:50]
    model = new_model(config, (784,), 10)
    penalty = new_penalty(config, model, x[:1])
    assert penalty is not None and new_penalty(SMALL, model, x[:1]) is None
    assert torch.equal(penalty(x, 3), penalty(x, 3)) and not torch.equal(penalty(x, 3), penalty(x, 4))
    mean = torch.stack([penalty(x, step).detach() for step in range(400)]).mean()
    assert float(mean) == pytest.approx(2 * rs.local_complexity(model, x, sigma=0.05).mean, rel=0.1)


def test_a_run_in_float64_is_in_float64(tmp_path: Path) -> None:
    run = train(replace(SMALL, dtype="float64", steps=2), tmp_path / "run")
    assert {w.dtype for w in run.weights(2).values()} == {torch.float64}
    assert next(run_model(run).parameters()).dtype == torch.float64


def test_the_regions_on_a_plane_are_recorded_too(tmp_path: Path) -> None:
    run = train(replace(SMALL, steps=1, records=2, width=5, measures=(), plane=True), tmp_path / "run")
    assert run.steps == [0, 1]
    cells = run.plane(0, "train", run_model(run, 0))
    assert len(cells) == run.read(0).planes["train"]
    reach = max(math.hypot(*anchor) for anchor in cells.plane.anchors)
    assert cells.plane.domain.max() == pytest.approx(1.2 * reach), "no image lies at the rim"
    assert cells.verify().holds
    with pytest.raises(ValueError, match=r"read without their network; .* run\.plane\(step, name, model\)"):
        run.plane(0, "train").plot(colour="gradient")


def test_a_plane_or_weights_that_were_not_recorded_are_told_with_those_that_were(tmp_path: Path) -> None:
    run = train(replace(SMALL, steps=1, records=2, width=5, measures=(), plane=True), tmp_path / "run")
    with pytest.raises(FileNotFoundError, match=r"no plane 'trai' at step 1 of .*run; there are train$"):
        run.plane(1, "trai")
    for read in (lambda: run.plane(7, "train"), lambda: run.weights(7), lambda: run_model(run, 7)):
        with pytest.raises(FileNotFoundError, match=r"step 7 was not recorded in .*run; there are 0, 1$"):
            read()


def test_a_run_without_records_has_no_network(tmp_path: Path) -> None:
    run = train(replace(SMALL, steps=1), tmp_path / "run")
    empty = rs.Run.create(tmp_path / "empty", run.config)
    with pytest.raises(ValueError, match=r"nothing was recorded in .*empty yet"):
        rs.run_model(empty)


def test_training_leaves_the_global_random_state(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    train(replace(SMALL, steps=5), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


def test_every_epoch_visits_all_points_in_its_own_order() -> None:
    split = torch.arange(100.0)[:, None], torch.arange(100)
    epochs = [torch.cat([batch(split, SMALL, 4 * epoch + k)[1] for k in range(4)]) for epoch in range(3)]
    assert all(epoch.sort().values.tolist() == list(range(100)) for epoch in epochs)
    assert not torch.equal(epochs[0], epochs[1])
    assert torch.equal(epochs[1], torch.cat([batch(split, SMALL, 4 + k)[1] for k in range(4)]))


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_its_records(tmp_path: Path) -> None:
    config = replace(SMALL, loss="mse", optimiser="sgd", lr=1e4)
    with pytest.raises(TrainingFailed, match=r"the loss is (nan|inf) at step \d+; try a smaller lr .* records"):
        train(config, tmp_path / "run")
    run = rs.Run.open(tmp_path / "run")
    assert run_state(run) == "failed"
    assert run.steps[:2] == [0, 1]
    assert all(math.isfinite(run.read(step).scalars["loss"] or math.nan) for step in run.steps)
    with pytest.raises(TrainingFailed, match="failed: the loss is"):
        resume(tmp_path / "run")


def test_wrong_settings_are_named_before_there_is_a_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gaussians has real targets; train with the loss mse"):
        train(replace(SMALL, dataset="gaussians"), tmp_path / "run")
    with pytest.raises(ValueError, match="loss must be one of cross-entropy, mse, softmax-cross-entropy"):
        replace(SMALL, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="optimiser must be one of sgd"):
        replace(SMALL, optimiser="lion")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decay must be all or weights, dtype float32 or float64; got biases, float32"):
        replace(SMALL, decay="biases")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="penalty must not be negative, its sigma positive; got -1"):
        replace(SMALL, penalty=-1)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        replace(SMALL, steps=0)
    with pytest.raises(ValueError, match="options are for local_rank, which is not among the measures"):
        replace(SMALL, options={"local_rank": {"eps": 0.2}})
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_begun_twice_nor_resumed_with_other_data(tmp_path: Path) -> None:
    train(replace(SMALL, steps=2), tmp_path / "run")
    with pytest.raises(rs.RunExists, match="resume it"):
        train(SMALL, tmp_path / "run")
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    about["config"]["data"] = "0" * 64
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    (tmp_path / "run" / "status.json").unlink()
    with pytest.raises(ValueError, match="going on would mix two data sets"):
        resume(tmp_path / "run")
    rs.Run.create(tmp_path / "other", {}).close()
    with pytest.raises(ValueError, match="was not begun by regionscope train"):
        resume(tmp_path / "other")


# real processes


def child(path: str, ready: str) -> None:
    """What a process does that will be killed: begin the run or go on with it."""
    torch.set_num_threads(1)
    tqdm.set_lock(threading.RLock())  # its usual one outlives a killed process
    restored = training._restore

    def telling(*arguments: Any) -> int:
        Path(ready).touch()
        return restored(*arguments)

    training._restore = telling  # type: ignore[assignment]
    if (Path(path) / "run.json").exists():
        resume(path, save_every=0)
    else:
        train(SMALL, path, save_every=0)


def started(path: Path, ready: bool) -> BaseProcess:
    """A process that begins a run or goes on with it; perhaps wait until it trains."""
    mark = path.with_name("ready")
    mark.unlink(missing_ok=True)
    process = forked(child, str(path), str(mark))
    while ready and not mark.exists() and process.is_alive():
        time.sleep(0.005)
    return process


def finished(path: Path) -> dict[int, Any]:
    process = started(path, ready=False)
    process.join(60)
    assert process.exitcode == 0
    return records(rs.Run.open(path))


def test_a_run_that_is_killed_thirty_times_loses_nothing(tmp_path: Path) -> None:
    whole = finished(tmp_path / "whole")
    moments, runs, kills, within = random.Random(0), [tmp_path / "run0"], 0, 0
    seen: dict[int, Any] = {}
    while kills < 30:
        process = started(runs[-1], ready=kills % 6 > 0)  # the others are killed while they start
        time.sleep(moments.uniform(0.0, 0.4))
        process.kill()
        process.join(60)
        kills += process.exitcode == -signal.SIGKILL
        if not (runs[-1] / "run.json").exists():
            continue
        run = rs.Run.open(runs[-1])
        now = records(run)
        assert seen.items() <= now.items(), "something that was recorded is lost"
        assert now.items() <= whole.items(), "something was recorded that the whole run does not have"
        within += 0 < len(now) < len(whole)
        seen = now
        if run.status.get("state") == "finished":
            runs, seen = [*runs, tmp_path / f"run{len(runs)}"], {}
    assert within >= 10
    for path in runs:
        assert finished(path) == whole
        assert not list(path.glob("*/.*"))


def test_a_signal_stops_between_two_steps_and_says_how_to_go_on(tmp_path: Path) -> None:
    code = "import sys; from regionscope.cli import main; sys.argv[0] = 'regionscope'; main()"
    options = (
        "--steps 1000000 --size 200 --depth 1 --width 8 --points 5 --records 10 --measures total_variation".split()
    )
    command = [sys.executable, "-c", code, "train", str(tmp_path / "run"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "steps" / "000000001").exists() and process.poll() is None:
        time.sleep(0.05)
    with pytest.raises(rs.RunLocked, match="another process"):
        resume(tmp_path / "run")
    assert run_state(rs.Run.open(tmp_path / "run")) == "running"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert f"go on with: regionscope resume {tmp_path / 'run'}" in out
    run = rs.Run.open(tmp_path / "run")
    state = run.latest_state()
    assert run_state(run) == "stopped"
    assert state is not None
    assert state[0] == run.status["step"] > 0


def test_the_digest_knows_data_again() -> None:
    data = training_data(SMALL)
    assert digest(data) == digest(training_data(SMALL))
    other = replace(data, train=(data.train[0] + 1e-6, data.train[1]))
    assert digest(other) != digest(data)


def test_a_full_disk_leaves_the_state_before_to_go_on_from(tmp_path: Path) -> None:
    run = rs.Run.create(tmp_path / "run", {})
    save_or_warn(run, 1, {"weight": torch.zeros(100_000)}, {})
    with full_disk(), pytest.warns(UserWarning, match="step 2 could not be saved"):
        save_or_warn(run, 2, {"weight": torch.ones(100_000)}, {})
    state = run.latest_state()
    assert state is not None and state[0] == 1 and not state[1]["weight"].any()


def test_a_loss_that_is_no_number_is_noticed_between_records_too(tmp_path: Path) -> None:
    config = replace(SMALL, loss="mse", optimiser="sgd", lr=1e4, records=2)
    with pytest.raises(TrainingFailed, match=r"the loss is (nan|inf) at step \d+"):
        train(config, tmp_path / "run")
    run = rs.Run.open(tmp_path / "run")
    assert run.steps == [0] and 1 < run.status["step"] < 100


def test_a_device_that_is_not_there_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    for device, reason in (("abacus", "device type"), ("meta:0:1", "Invalid device string")):
        with pytest.raises(ValueError, match=f"device '{device}' cannot be used here: .*{reason}"):
            train(SMALL, tmp_path / "run", device=device)
    assert not (tmp_path / "run").exists()


def test_options_that_no_measure_takes_are_refused_before_there_is_a_run(tmp_path: Path) -> None:
    wrong = replace(SMALL, measures=("boundary_crossings",), options={"boundary_crossings": {"directions": 0}})
    with pytest.raises(ValueError, match=r"cannot be measured so: .*directions"):
        train(wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_makes_room_only_if_asked_to(tmp_path: Path) -> None:
    train(replace(SMALL, steps=3), tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    again = train(replace(SMALL, steps=2), tmp_path / "run", overwrite=True)
    assert again.steps == [0, 1, 2] and (tmp_path / "run" / "notes.txt").read_text() == "mine"
