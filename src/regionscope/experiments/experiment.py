"""One figure of a paper as an experiment: settings at three scales -> evidence -> checks -> verdict and picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.settings import differences, settings_to_plain
from regionscope.runs.run import library_versions
from regionscope.training.config import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S]):
    """A figure, what the paper claims with it, and how that is checked.

    `scales` has settings for smoke (seconds), laptop (ten minutes on two cores) and paper (its own): frozen dataclasses
    of one kind with a field `seeds`. What is trained and measured follows from them: `trainings` and `measurements` are
    lists of independent tasks, the second of which may look at the runs of the first. `evidence` collects the numbers
    from the runs and from what the measurements found, `checks` are rules on them, a pure function written down before
    anything was run, and `draw` makes the figure in the paper's layout. `choices` says what the paper leaves open.
    """

    name: str
    title: str
    claim: str
    scales: Mapping[Scale, S]
    evidence: Callable[[S, Lab], Evidence]
    checks: Callable[[S, Evidence], Sequence[Check]]
    draw: Callable[[Findings], "Figure"]
    trainings: Callable[[S], Sequence[Training]] = lambda settings: ()
    measurements: Callable[[S], Sequence[Measurement]] = lambda settings: ()
    choices: tuple[str, ...] = ()

    def settings(self, scale: Scale, seeds: int | None = None) -> S:
        """Those of a scale, with the first so many seeds if that is told."""
        if seeds is not None and seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {seeds}")
        own: Any = self.scales[scale]
        chosen: S = own if seeds is None else replace(own, seeds=tuple(range(seeds)))
        return chosen


def findings(experiment: Experiment[Any], scale: Scale, lab: Lab, *, seeds: int | None = None) -> Findings:
    """Train and measure what is missing, judge it, and tell all of it."""
    settings = experiment.settings(scale, seeds)
    trainings, measurements = experiment.trainings(settings), experiment.measurements(settings)
    lab.runs(trainings)
    lab.measured(measurements)
    evidence = experiment.evidence(settings, lab)
    told = "" if seeds is None else f" --seeds {seeds}"
    return Findings(
        name=experiment.name,
        scale=scale,
        claim=experiment.claim,
        checks=tuple(experiment.checks(settings, evidence)),
        evidence=evidence,
        deviations=differences(settings, experiment.scales["paper"]),
        choices=experiment.choices,
        settings=settings_to_plain(settings),
        seeds=settings.seeds,
        versions=library_versions(),
        seconds=round(lab.seconds(trainings, measurements), 1),
        command=f"regionscope reproduce {experiment.name} --scale {scale}{told}",
    )
