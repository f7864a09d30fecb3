"""Lightning, transformers, torchmetrics and the loggers, with the packages themselves."""

import csv
import importlib
import json
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing import get_context
from torch.utils.data import DataLoader, TensorDataset

import regionscope as rs
from regionscope.integrations.loggers import CSV, TensorBoard, WandB
from regionscope.integrations.torchmetrics import METRICS, PointMetric, metric
from regionscope.measures.draws import part_number
from regionscope.runs.monitor import Monitor
from regionscope.runs.run import Run

pytestmark = [
    pytest.mark.filterwarnings(rf"ignore:{message}")
    for message in (
        r"`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning",  # lightning, of torch
    )
]
POINTS = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
LABELS = (POINTS[:, 0] > 0).long()
OPTIONS: dict[str, dict[str, Any]] = {"boundary_crossings": {"directions": 3, "radius": 0.3}}
MEASURES: dict[str, Any] = {"boundary_crossings": {"directions": 3}, "total_variation": {}}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
    )


def assert_same(one: nn.Module, other: nn.Module) -> None:
    """Weights and buffers are equal, bit for bit."""
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


# optional packages


def test_importing_regionscope_imports_no_optional_package() -> None:
    code = (
        "import sys, regionscope, regionscope.integrations.loggers\n"
        "optional = {'lightning', 'pytorch_lightning', 'transformers', 'torchmetrics', 'tensorboard', 'wandb'}\n"
        "assert not optional & sys.modules.keys(), optional & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["lightning", "transformers", "torchmetrics"])
def test_a_missing_package_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (name, f"{name}.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"regionscope.integrations.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'regionscope\[{name}\]'"):
        importlib.import_module(f"regionscope.integrations.{name}")


def test_a_logger_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch.utils.tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'regionscope\[tensorboard\]'"):
        TensorBoard("logs")
    with pytest.raises(ImportError, match=r"pip install 'regionscope\[wandb\]'"):
        WandB("project")


# loggers


def test_tensorboard_reads_what_was_logged(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Monitor(network(), {"train": POINTS}, measures=MEASURES, loggers=[TensorBoard(tmp_path)]) as monitor:
        records = [monitor(step, loss=0.5) for step in (0, 7)]
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(0, 0.5), (7, 0.5)]
    assert records[0] is not None
    logged = events.Scalars("train/total_variation")[0].value
    assert logged == pytest.approx(records[0].probes["train"]["total_variation"]["mean"])
    assert "train/boundary_crossings/layer2" in events.Tags()["scalars"]


def test_a_tensorboard_that_logs_nothing_writes_no_file(tmp_path: Path) -> None:
    TensorBoard(tmp_path / "logs").close()
    assert not (tmp_path / "logs").exists()


def history(folder: Path) -> list[dict[str, Any]]:
    """The rows that an offline run of Weights & Biases has written."""
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    for _ in range(100):  # the file is written by another process, sometimes a moment after the run has finished
        found = records(file.read_bytes())
        if found and found[-1].WhichOneof("record_type") == "exit":
            break
        time.sleep(0.2)
    rows = [record.history.item for record in found if record.WhichOneof("record_type") == "history"]
    return [{i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in items} for items in rows]


def records(data: bytes) -> list[Any]:
    """A log of records in one block: 7 bytes ahead, then check sum, size and kind before each."""
    from wandb.proto import wandb_internal_pb2

    place, found = 7, []
    while place + 7 < len(data):
        _, size, kind = struct.unpack("<IHB", data[place : place + 7])
        assert kind == 1, "the whole record"
        place += 7 + size
        if place <= len(data):
            found.append(wandb_internal_pb2.Record.FromString(data[place - size : place]))  # type: ignore[attr-defined]
    return found


def test_wandb_gets_what_was_logged_without_a_connection(tmp_path: Path) -> None:
    logger = WandB("regions", mode="offline", dir=tmp_path)
    assert not list(tmp_path.iterdir()), "nothing is opened before the first step"
    logger.log(0, {"loss": 1.0})
    logger.log(10, {"loss": 0.5, "train/local_rank": 3.0})
    logger.close()
    first, second = history(tmp_path)
    assert (first["step"], first["loss"]) == (0, 1.0)
    assert (second["step"], second["loss"], second["train/local_rank"]) == (10, 0.5, 3.0)


def test_a_wandb_run_of_the_user_stays_open(tmp_path: Path) -> None:
    import wandb

    with wandb.init(project="mine", mode="offline", dir=tmp_path) as run:
        logger = WandB(run)
        logger.log(3, {"train/local_rank": 3.0})
        logger.close()
        run.log({"own": 1.0})
        with pytest.raises(ValueError, match="got mode with a run that is open"):
            WandB(run, mode="offline")
    assert [sorted(row.keys() - {"_runtime", "_step", "_timestamp"}) for row in history(tmp_path)] == [
        ["step", "train/local_rank"],
        ["own"],
    ]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_columns_may_grow(tmp_path: Path) -> None:
    logger = CSV(tmp_path / "new" / "numbers.csv")
    logger.log(0, {"loss": 1.0})
    logger.log(1, {"loss": 0.5, 'a, "b"': 2.0})
    logger.log(2, {"loss": 0.25})
    logger.close()
    assert table(logger.path) == [
        {"step": "0", "loss": "1.0", 'a, "b"': ""},
        {"step": "1", "loss": "0.5", 'a, "b"': "2.0"},
        {"step": "2", "loss": "0.25", 'a, "b"': ""},
    ]


def test_csv_goes_on_after_a_kill_with_every_step_once(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    first = CSV(path)
    for step in range(4):
        first.log(step, {"loss": 1.0, "x": 2.0})
    path.write_bytes(path.read_bytes()[:-4])  # the last row is cut off
    second = CSV(path)
    for step in (2, 3, 4):
        second.log(step, {"loss": 0.5, "x": 2.0})
    assert [(row["step"], row["loss"]) for row in table(path)] == [
        ("0", "1.0"), ("1", "1.0"), ("2", "0.5"), ("3", "0.5"), ("4", "0.5"),
    ]  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == ["numbers.csv"]


def test_csv_refuses_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("epoch,loss\n1,2\n")
    with pytest.raises(ValueError, match="first column is 'epoch'"):
        CSV(path)


# torchmetrics


def per_point(name: str, model: nn.Module, *parts: slice) -> Any:
    """What the measure itself says of the batches."""
    measure, options = rs.MEASURES[name], OPTIONS.get(name, {})
    return np.concatenate(
        [measure.estimate(model, POINTS[p], LABELS[p], part=part_number(POINTS[p]), **options).per_point for p in parts]
    )


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_its_measure_over_all_batches(name: str) -> None:
    model, parts = network(), (slice(0, 5), slice(5, 6), slice(6, 16))
    found = metric(name, model, **OPTIONS.get(name, {}))
    for part in parts:
        found.update(POINTS[part], LABELS[part])
    assert model.training, "measured in evaluation mode, and left as it was"
    expected = per_point(name, model.eval(), *parts)
    assert float(found.compute()) == pytest.approx(expected.mean())
    share = float(expected.mean())
    error = ((share * (1 - share) + 1 / 64) / 16) ** 0.5 * 16 / 17  # Wilson's, at one standard deviation
    error = error if name == "robust_accuracy" else expected.std(ddof=1) / 4
    assert float(found.stderr) == pytest.approx(error, abs=1e-7)
    found.reset()
    assert int(found.count) == 0


def test_a_metric_takes_arrays_as_it_takes_tensors() -> None:
    found, expected = (metric("certified_radius", network().eval()) for _ in range(2))
    found.update(POINTS.double().numpy(), LABELS.numpy())
    expected.update(POINTS, LABELS)
    assert found.compute() == expected.compute() > 0


def test_no_batch_has_the_noise_of_another() -> None:
    """Points so near to each other that they differ by what is drawn alone, one a batch."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    x = 1e-9 * torch.randn(16, 4, generator=torch.Generator().manual_seed(0)).double()
    net, means, errors = rs.trace(model, x), list[float](), list[float]()
    for seed in range(12):
        few: dict[str, Any] = {"draws": 2, "method": "random", "directions": 2, "sigma": 0.3, "good": False}
        complexity = metric("local_complexity", net, seed=seed, **few)
        for batch in x.split(1):
            complexity.update(batch)
        means.append(float(complexity.compute()))
        errors.append(float(complexity.stderr))
    assert 0.4 < np.std(means, ddof=1) / np.mean(errors) < 2.5


def test_neither_the_order_of_batches_nor_what_was_seen_before_matters() -> None:
    model = network().eval()
    few: dict[str, Any] = {"method": "random", "directions": 2, "target": 0}
    found = [metric("total_variation", model, **few) for _ in range(3)]
    batches = POINTS.split(5)
    for batch in batches:
        found[0].update(batch)
    for batch in batches[::-1]:
        found[1](batch)
    for batch in batches[:2]:
        found[2].update(batch)
    found[2].reset()
    for batch in batches:
        found[2].update(batch)
    assert float(found[1].compute()) == pytest.approx(float(found[0].compute()))
    assert found[2].compute() == found[0].compute()
    other = metric("total_variation", model, seed=1, **few)
    other.update(POINTS)
    assert float(other.compute()) != pytest.approx(float(found[0].compute()))


def test_the_error_of_a_metric_is_that_of_its_estimate() -> None:
    """With errors that lie on one side at all points, and of a single point."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(40, 60), nn.ReLU(), nn.Linear(60, 60), nn.ReLU()), torch.randn(9, 40)
    options: dict[str, Any] = {"method": "random", "directions": 4, "eps": 0.1}
    for points in (x, x[:1]):
        rank = metric("local_rank", model, **options)
        rank.update(points)
        whole = rs.MEASURES["local_rank"].estimate(model, points, part=part_number(points), **options)
        assert float(rank.stderr) == pytest.approx(whole.stderr) and whole.stderr > 0
        assert whole.resolution is not None and whole.stderr >= whole.resolution.mean()
    exact = metric("total_variation", model, target=0)
    exact.update(x[:1])
    assert exact.stderr.isnan(), "one point does not say how others differ"


def test_batches_share_their_directions() -> None:
    model = network().eval()
    crossings = metric("boundary_crossings", model, **OPTIONS["boundary_crossings"])
    for x in POINTS.split(5):
        crossings.update(x)
    assert (
        float(crossings.compute())
        == rs.MEASURES["boundary_crossings"].estimate(model, POINTS, **OPTIONS["boundary_crossings"]).mean
    )


def test_metrics_have_named_classes_that_can_be_pickled() -> None:
    from regionscope.integrations import torchmetrics as twins

    rank = twins.LocalRank(network(), eps=0.5)
    rank.update({"x": POINTS, "y": LABELS})
    again = pickle.loads(pickle.dumps(rank))
    assert type(again) is twins.LocalRank is METRICS["local_rank"]
    assert again.compute() == rank.compute()
    with pytest.raises(AttributeError, match="LocalNonsense"):
        _ = twins.LocalNonsense


def test_forward_gives_the_batch_and_keeps_the_rest() -> None:
    model = network().eval()
    variation = metric("total_variation", model)
    assert float(variation(POINTS[:4])) == pytest.approx(rs.total_variation(model, POINTS[:4]).mean)
    assert float(variation(POINTS[4:])) == pytest.approx(rs.total_variation(model, POINTS[4:]).mean)
    whole = rs.total_variation(model, POINTS)
    assert float(variation.compute()) == pytest.approx(whole.mean)
    assert float(variation.stderr) == pytest.approx(whole.stderr)


def test_metrics_merge_also_after_they_were_computed() -> None:
    model = network().eval()
    first, second = metric("total_variation", model), metric("total_variation", model)
    first.update(POINTS[:20])
    second.update(POINTS[20:])
    first.compute()
    first.merge_state(second)
    assert float(first.compute()) == pytest.approx(rs.total_variation(model, POINTS).mean)


def test_the_model_is_shared_and_no_part_of_the_metric() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()
            self.metric = metric("total_variation", self.net)

    both = Both()
    assert not list(both.metric.parameters())
    assert both.state_dict().keys() == {f"net.{name}" for name in both.net.state_dict()}
    assert deepcopy(both.metric).held.model is both.net
    copied = deepcopy(both)
    assert copied.metric.held.model is copied.net


def test_metrics_work_in_inference_mode_and_in_collections() -> None:
    from torchmetrics import MetricCollection

    model = network().eval()
    collection = MetricCollection([metric("robust_accuracy", model), metric("good_units", model)])
    with torch.inference_mode():
        collection.update(POINTS * 1.0, LABELS * 1)
    found = collection.compute()
    assert float(found["RobustAccuracy"]) == pytest.approx(rs.robust_accuracy(model, POINTS, LABELS).mean)
    assert float(found["GoodUnits"]) == pytest.approx(rs.good_units(model, POINTS).mean)


def test_wrong_uses_of_metrics_are_refused() -> None:
    model = network().eval()
    with pytest.raises(ValueError, match="there is no measure 'nonsense'; there are local_complexity"):
        metric("nonsense", model)
    with pytest.raises(TypeError, match="no option 'sigma' here; it has target"):
        metric("total_variation", model, sigma=1.0)
    with pytest.raises(ValueError, match="needs labels"):
        metric("certified_radius", model).update(POINTS)
    with pytest.raises(TypeError, match="make a metric for each"):
        metric("boundary_crossings", model, radius=[0.1, 0.2], directions=2).update(POINTS)


def one_of_two(rank: int, folder: Path) -> None:
    """A process that sees its part of the points, rank 0 more than rank 1."""
    start = {"init_method": f"file://{folder}/meet", "timeout": timedelta(minutes=2)}
    dist.init_process_group("gloo", rank=rank, world_size=2, **start)  # type: ignore[arg-type]
    found: dict[str, list[float]] = {}
    for name in ("boundary_crossings", "total_variation"):
        part: PointMetric = metric(name, network().eval(), **OPTIONS.get(name, {}))
        part.update(POINTS[:20] if rank == 0 else POINTS[20:])
        found[name] = [float(part.compute()), float(part.stderr), int(part.count)]
    torch.save(found, folder / str(rank))
    dist.destroy_process_group()


def test_metrics_are_whole_on_every_process(tmp_path: Path) -> None:
    other = get_context("spawn").Process(target=one_of_two, args=(1, tmp_path))
    other.start()
    one_of_two(0, tmp_path)
    other.join()
    for name in ("boundary_crossings", "total_variation"):
        whole = rs.MEASURES[name].estimate(network().eval(), POINTS, **OPTIONS.get(name, {}))
        for rank, own in enumerate((20, 12)):
            mean, stderr, count = torch.load(tmp_path / str(rank))[name]
            assert mean == pytest.approx(whole.mean)
            assert stderr == pytest.approx(whole.stderr)
            assert count == own, "its own points only, after the numbers were put together"


# lightning

LIGHTNINGS = ["lightning.pytorch", "pytorch_lightning"]


def lightning_module(package: ModuleType, fail_at: int | None = None) -> Any:
    class Module(package.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)  # type: ignore[no-any-return]

        def training_step(self, batch: list[Tensor], number: int) -> Tensor:
            if number == fail_at:
                raise RuntimeError("the machine is on fire")
            loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    return Module()


def fitted(package: ModuleType, module: Any, callbacks: list[Any], **options: Any) -> Any:
    options = {"logger": False, "max_epochs": 2, **options}
    trainer = package.Trainer(
        accelerator="cpu", enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
        callbacks=callbacks, **options,
    )  # fmt: skip
    torch.manual_seed(1)
    loader: DataLoader[Any] = DataLoader(TensorDataset(POINTS, LABELS), batch_size=8, shuffle=True)
    trainer.fit(module, loader)
    return trainer


@pytest.mark.parametrize("name", LIGHTNINGS)
def test_lightning_trains_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    from regionscope.integrations.lightning import RegionScopeCallback

    L = importlib.import_module(name)
    alone, watched = lightning_module(L), lightning_module(L)
    fitted(L, alone, [])
    after_alone = torch.rand(3)
    callback = RegionScopeCallback(
        {"train": (POINTS, LABELS)}, measures=MEASURES, steps=[0, 1, 5, 8], run=tmp_path / "run", strict=True
    )
    fitted(L, watched, [callback])
    assert torch.equal(torch.rand(3), after_alone)
    assert_same(alone, watched)
    run = Run.open(tmp_path / "run")
    assert run.steps == [0, 1, 5, 8]
    assert run.read(0).scalars == {}
    scalars = run.read(8).scalars
    assert scalars["loss"] == pytest.approx(scalars["train_loss"])
    assert torch.equal(run.weights(8)["net.0.weight"], watched.net[0].weight)
    expected = rs.total_variation(watched.net.eval(), POINTS).mean
    assert run.read(8).probes["train"]["total_variation"]["mean"] == pytest.approx(expected)


def test_lightning_measures_a_part_and_logs_to_lightnings_logger(tmp_path: Path) -> None:
    import lightning.pytorch as L
    from lightning.pytorch.loggers import CSVLogger

    from regionscope.integrations.lightning import RegionScopeCallback

    callback = RegionScopeCallback(
        {"train": POINTS}, network="net", measures=MEASURES, steps=[0, 2], run=tmp_path / "r"
    )
    fitted(L, lightning_module(L), [callback], logger=CSVLogger(tmp_path, "logs", ""), log_every_n_steps=1)
    rows = [row for row in table(tmp_path / "logs" / "metrics.csv") if row["train/total_variation"]]
    run = Run.open(tmp_path / "r")
    assert "0.weight" in run.weights(2)
    assert float(rows[1]["train/total_variation"]) == run.read(2).probes["train"]["total_variation"]["mean"]


def test_lightnings_loggers_have_measures_at_the_step_of_what_lightning_logs(tmp_path: Path) -> None:
    import lightning.pytorch as L
    from lightning.pytorch.loggers import CSVLogger

    from regionscope.integrations.lightning import RegionScopeCallback

    callback = RegionScopeCallback({"train": POINTS}, measures=["total_variation"], steps=[4, 8], run=tmp_path / "r")
    fitted(L, lightning_module(L), [callback], logger=CSVLogger(tmp_path, "logs", ""), log_every_n_steps=4)
    rows = table(tmp_path / "logs" / "metrics.csv")
    measured, lost = ({row["step"]: row[name] for row in rows if row[name]} for name in (
        "train/total_variation", "train_loss",
    ))  # fmt: skip
    assert list(measured) == list(lost) == ["3", "7"], "batches from 0, whatever the number of optimisers"
    recorded = Run.open(tmp_path / "r").curve("loss")
    assert recorded[0] == [4, 8] and recorded[1] == pytest.approx([float(loss) for loss in lost.values()])


def test_lightning_records_a_step_of_several_batches_once(tmp_path: Path) -> None:
    import lightning.pytorch as L

    from regionscope.integrations.lightning import RegionScopeCallback

    callback = RegionScopeCallback({"train": POINTS}, measures=["total_variation"], loggers=[CSV(tmp_path / "a.csv")])
    fitted(L, lightning_module(L), [callback], accumulate_grad_batches=2)
    rows = table(tmp_path / "a.csv")
    assert [row["step"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert float(rows[-1]["loss"]) > 0.3, "the loss itself, not its share of the step"


def test_a_lightning_training_that_fails_leaves_a_closed_run(tmp_path: Path) -> None:
    import lightning.pytorch as L

    from regionscope.integrations.lightning import RegionScopeCallback

    options: dict[str, Any] = {"measures": ["total_variation"], "run": tmp_path / "run"}
    with pytest.raises(RuntimeError, match="on fire"):
        fitted(L, lightning_module(L, fail_at=2), [RegionScopeCallback({"train": POINTS}, **options)])
    assert Run.open(tmp_path / "run").steps == [0, 1, 2]
    fitted(L, lightning_module(L), [RegionScopeCallback({"train": POINTS}, resume=True, **options)])
    assert Run.open(tmp_path / "run").steps == list(range(9))


def test_a_lightning_callback_with_loggers_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    from regionscope.integrations.lightning import RegionScopeCallback

    loggers = [TensorBoard(tmp_path / "logs"), WandB("project", mode="offline"), CSV(tmp_path / "a.csv")]
    again = pickle.loads(pickle.dumps(RegionScopeCallback({"train": POINTS}, steps=[0], loggers=loggers)))
    assert again.watcher.options["loggers"][1].options == {"project": "project", "mode": "offline"}
    assert not list(tmp_path.iterdir())


def test_wrong_options_of_a_callback_are_told_before_training() -> None:
    import lightning.pytorch as L

    from regionscope.integrations.lightning import RegionScopeCallback

    with pytest.raises(TypeError, match="measure"):
        RegionScopeCallback({"train": POINTS}, measure=["total_variation"])
    for network, message in (("head", "network='head' does not fit Module"), ("training", "got bool")):
        with pytest.raises((ValueError, TypeError), match=message):
            fitted(L, lightning_module(L), [RegionScopeCallback({"train": POINTS}, network=network)])


# transformers


def classifier() -> Any:
    from transformers import PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import SequenceClassifierOutput

    class Classifier(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__(config)
            self.net = network()
            self.post_init()

        def forward(self, x: Tensor, labels: Tensor | None = None) -> SequenceClassifierOutput:
            outputs = self.net(x)
            loss = None if labels is None else nn.functional.cross_entropy(outputs, labels)
            told: dict[str, Any] = {"loss": loss, "logits": outputs}  # whose types differ from version to version
            return SequenceClassifierOutput(**told)

    return Classifier(PretrainedConfig())


def trained(folder: Path, callbacks: list[Any], history: list[Any] | None = None, **options: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    rows = [{"x": x, "labels": y} for x, y in zip(POINTS, LABELS, strict=True)]
    options = {"save_strategy": "no", "num_train_epochs": 2, "report_to": [], **options}
    arguments = TrainingArguments(
        str(folder / "out"), per_device_train_batch_size=8, learning_rate=1e-2, logging_steps=1,
        disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False, **options,
    )  # fmt: skip
    model = classifier()
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks)
    trainer.train()
    if history is not None:
        history += trainer.state.log_history
    return model


def test_a_trainer_trains_the_same_bit_for_bit(tmp_path: Path) -> None:
    from regionscope.integrations.transformers import RegionScopeTrainerCallback

    alone = trained(tmp_path, [])
    callback = RegionScopeTrainerCallback(
        {"train": (POINTS, LABELS)}, measures=MEASURES, steps=[0, 1, 5, 8], run=tmp_path / "run", strict=True
    )
    watched = trained(tmp_path, [callback])
    assert_same(alone, watched)
    run = Run.open(tmp_path / "run")
    assert run.steps == [0, 1, 5, 8]
    assert run.curve("loss")[0] == [1, 5, 8] and min(run.curve("loss")[1]) > 0, "the loss of the step itself"
    assert torch.equal(run.weights(8)["net.0.weight"], watched.net[0].weight)
    expected = rs.total_variation(watched.net.eval(), POINTS).mean
    assert run.read(8).probes["train"]["total_variation"]["mean"] == pytest.approx(expected)


@pytest.mark.parametrize("chosen", ["net", lambda model: model.net, lambda model: lambda x: model(x=x).logits])
def test_a_trainers_model_is_called_as_told(chosen: str | Callable[[Any], Any], tmp_path: Path) -> None:
    from regionscope.integrations.transformers import RegionScopeTrainerCallback

    callback = RegionScopeTrainerCallback(
        {"train": POINTS}, network=chosen, measures=["total_variation"], steps=[2], run=tmp_path / "run", strict=True
    )
    model = trained(tmp_path, [callback], max_steps=2)
    found = Run.open(tmp_path / "run").read(2).probes["train"]["total_variation"]["mean"]
    assert found == pytest.approx(rs.total_variation(model.net.eval(), POINTS).mean)


@pytest.mark.parametrize("strategy", ["steps", "epoch"])
def test_measures_enter_the_trainers_log_and_what_it_reports_to(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from regionscope.integrations.transformers import RegionScopeTrainerCallback

    def losses(callbacks: list[Any], folder: Path) -> tuple[list[dict[str, Any]], Any]:
        histories: list[dict[str, Any]] = []
        options = {"report_to": ["tensorboard"], "logging_strategy": strategy}
        monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(folder))
        trained(folder, callbacks, history=histories, **options)
        return histories, EventAccumulator(str(folder)).Reload()

    callback = RegionScopeTrainerCallback(
        {"train": POINTS}, measures=["total_variation"], steps=[0, 3, 8], run=tmp_path / "run", strict=True
    )
    alone, _ = losses([], tmp_path / "alone")
    history, events = losses([callback], tmp_path / "watched")
    name, steps = "train/total_variation", [0, 3, 8]
    measured = [entry for entry in history if name in entry]
    assert [entry["step"] for entry in measured] == steps
    assert [entry[name] for entry in measured] == Run.open(tmp_path / "run").curve(name)[1]
    (tag,) = [tag for tag in events.Tags()["scalars"] if tag.endswith(name)]
    assert [event.step for event in events.Scalars(tag)] == steps
    own = [[(e["step"], e["loss"]) for e in entries if "loss" in e] for entries in (alone, history)]
    assert own[0] == own[1] and own[0], "what the Trainer logs itself is the same"


def test_the_last_step_is_recorded_before_the_best_model_is_brought_back(tmp_path: Path) -> None:
    from regionscope.integrations.transformers import RegionScopeTrainerCallback

    callback = RegionScopeTrainerCallback(
        {"train": POINTS}, measures=["total_variation"], steps=[2, 4], run=tmp_path / "run", strict=True
    )
    best: dict[str, Any] = {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss",
                            "greater_is_better": True, "eval_strategy": "steps", "save_strategy": "steps"}  # fmt: skip
    model = trained(tmp_path, [callback], max_steps=4, eval_steps=2, save_steps=2, **best)
    run = Run.open(tmp_path / "run")
    losses = run.curve("eval_loss")
    assert losses[0] == [2, 4] and losses[1][1] < losses[1][0]
    weights = [run.weights(step)["net.0.weight"] for step in (2, 4)]
    assert torch.equal(weights[0], model.net[0].weight), "the best, by this measure"
    assert not torch.equal(weights[0], weights[1])


def test_a_callback_records_for_trainers_that_are_none_of_transformers_too(tmp_path: Path) -> None:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from regionscope.integrations.transformers import RegionScopeTrainerCallback

    callback = RegionScopeTrainerCallback({"train": POINTS}, measures=["total_variation"], run=tmp_path / "run")
    told = TrainingArguments(str(tmp_path / "out"), use_cpu=True), TrainerState(global_step=3), TrainerControl()
    callback.on_train_begin(*told, model=(model := classifier()))
    callback.on_step_begin(*told)
    callback.on_train_end(*told)
    found = Run.open(tmp_path / "run").read(3).probes["train"]["total_variation"]["mean"]
    assert found == pytest.approx(rs.total_variation(model.net.eval(), POINTS).mean)
