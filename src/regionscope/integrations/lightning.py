"""A callback for Lightning, as `lightning` or as `pytorch_lightning`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regionscope.integrations import extra
from regionscope.integrations.watching import Choice, Watcher
from regionscope.runs.watched import Probe

with extra("lightning"):
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[assignment]

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class RegionScopeCallback(Callback):
    """Records measures while Lightning trains, which goes on as without it, bit for bit.

        Trainer(callbacks=[RegionScopeCallback({"train": x}, network="net", steps=rs.log_steps(9000, 20), run="runs")])

    `network` is what to measure: the name of an attribute of the module, or a function from it to a function of
    tensors; without it, the module itself by its `forward`. The other options are those of `Monitor`. Steps are
    Lightning's `global_step`, as in the names of its checkpoints: 0 before training. With each goes the loss and what
    the module has logged; what is measured also goes to Lightning's own loggers. They count batches from 0, so what is
    known after the first, `global_step` 1, stands at their step 0, and measures stand beside the losses they belong to.
    """

    def __init__(self, probes: Mapping[str, Probe], *, network: Choice | None = None, **options: Any) -> None:
        self.watcher = Watcher(probes, network, options)

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Make the monitor and record the state before training."""
        self.watcher.start(pl_module)
        self._record(trainer, {})

    def on_train_batch_end(
        self, trainer: "Trainer", pl_module: "LightningModule", outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Record the step."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        # Lightning has divided it by the number of batches of a step
        self._record(trainer, {"loss": loss * trainer.accumulate_grad_batches} if isinstance(loss, Tensor) else {})

    def on_train_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Close the monitor."""
        self.watcher.close()

    def on_exception(self, trainer: "Trainer", pl_module: "LightningModule", exception: BaseException) -> None:
        """Close the monitor, so that what was recorded is whole."""
        self.watcher.close()

    def _record(self, trainer: "Trainer", scalars: Mapping[str, Any]) -> None:
        step = trainer.global_step
        values = self.watcher.record(step, lambda: {**scalars, **trainer.callback_metrics})
        for logger in trainer.loggers if values else ():
            logger.log_metrics(values, step=trainer.fit_loop.epoch_loop._batches_that_stepped)  # as Lightning logs
