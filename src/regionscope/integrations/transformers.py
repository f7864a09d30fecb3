"""A callback for the Trainer of Hugging Face transformers."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from regionscope.integrations import extra
from regionscope.integrations.watching import Choice, Watcher
from regionscope.runs.watched import Probe

with extra("transformers"):
    from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments


def logits(model: nn.Module) -> Callable[[Tensor], Any]:
    """The model as a function of its first argument to its logits."""

    def called(x: Tensor) -> Any:
        output = model(x)
        return getattr(output, "logits", output)

    return called


class RegionScopeTrainerCallback(TrainerCallback):
    """Records measures while a Trainer trains, which goes on as without it, bit for bit.

        Trainer(model, ..., callbacks=[RegionScopeTrainerCallback({"train": x}, measures=["total_variation"])])

    `network` says how to call the model: a function from it to a function of tensors, such as
    `lambda model: lambda x: model(pixel_values=x).logits`, or the name of an attribute. Regions lie where inputs are
    numbers: of a language model that is behind the embedding, at points `model.get_input_embeddings()(tokens)` with
    `lambda model: lambda x: model(inputs_embeds=x).logits`. The other options are those of `Monitor`. Steps are the
    Trainer's `global_step`, 0 before training; with each goes what the Trainer logged at that very step. What is
    measured enters the Trainer's log, and so all that `report_to` names, at the same step. If training fails, the
    Trainer does not tell: call `close()` before you go on.
    """

    def __init__(self, probes: Mapping[str, Probe], *, network: Choice = logits, **options: Any) -> None:
        self.watcher = Watcher(probes, network, options)
        self.logged: tuple[int, dict[str, Any]] = (-1, {})
        self.trainer: Trainer | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Make the monitor."""
        self.trainer = _calling_trainer()
        self.watcher.start(parts["model"])

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        """Keep what is logged for the record of this step."""
        step, before = self.logged
        self.logged = state.global_step, {**(before if step == state.global_step else {}), **(logs or {})}

    # The loss of a step is logged after the step has ended: record just before the next step, or the epoch's end.

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Record the step before."""
        self._record(state, control)

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any) -> None:
        """Record the epoch's last step."""
        self._record(state, control)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any) -> None:
        """Close the monitor."""
        self.close()

    def close(self) -> None:
        """Record no more."""
        self.watcher.close()
        self.trainer = None

    def _record(self, state: TrainerState, control: TrainerControl) -> None:
        step = state.global_step
        values = self.watcher.record(step, lambda: self.logged[1] if self.logged[0] == step else {})
        if values and self.trainer is not None and state.is_world_process_zero:
            wanted = control.should_log  # taken back by every log
            self.trainer.log(values)
            control.should_log = wanted


def _calling_trainer() -> Trainer | None:
    """The Trainer that calls a callback: it tells callbacks all but itself, and only its `log` reaches `report_to`."""
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(caller := frame.f_locals.get("self"), Trainer):
            return caller
        frame = frame.f_back
    return None
