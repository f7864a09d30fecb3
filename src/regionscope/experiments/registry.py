"""All experiments by name, in the order of their papers and figures."""

from typing import Any

from regionscope.experiments import (
    hr_distances,
    hr_layers,
    hr_lines,
    hr_planes,
    hr_random,
    hr_sawtooth,
    lc_bounds,
    lc_bunny,
    lc_gaussians,
    lc_mnist,
    lc_shallow,
    pd_checks,
    pd_cnn,
    pd_deformation,
    pd_folder,
    pd_grokking,
    pd_migration,
    pd_mnist,
    pd_resnet,
    pd_sweeps,
    pd_toy,
    x_activations,
    x_definitions,
    x_grokking,
    x_membership,
    x_migration,
    x_penalty,
    x_prediction,
    x_tightness,
)
from regionscope.experiments.experiment import Experiment

PAPERS = {
    "lc": "On the Local Complexity of Linear Regions in Deep ReLU Networks (Patel and Montúfar)",
    "hr": "Complexity of Linear Regions in Deep Networks (Hanin and Rolnick)",
    "pd": "Deep Network Partition Density Exhibits Double Descent (Humayun, Balestriero and Baraniuk)",
    "x": "Beyond the papers",
}
FAMILIES: tuple[tuple[Experiment[Any], ...], ...] = (
    # LC
    lc_mnist.FIGURES,
    lc_gaussians.FIGURES,
    lc_bunny.FIGURES,
    lc_bounds.FIGURES,
    lc_shallow.FIGURES,
    # HR
    hr_lines.FIGURES,
    hr_distances.FIGURES,
    hr_planes.FIGURES,
    hr_random.FIGURES,
    hr_layers.FIGURES,
    hr_sawtooth.FIGURES,
    # PD
    pd_cnn.FIGURES,
    pd_resnet.FIGURES,
    pd_folder.FIGURES,
    pd_deformation.FIGURES,
    pd_mnist.FIGURES,
    pd_migration.FIGURES,
    pd_grokking.FIGURES,
    pd_sweeps.FIGURES,
    pd_checks.FIGURES,
    pd_toy.FIGURES,
    # beyond the papers
    x_penalty.FIGURES,
    x_definitions.FIGURES,
    x_migration.FIGURES,
    x_activations.FIGURES,
    x_tightness.FIGURES,
    x_grokking.FIGURES,
    x_membership.FIGURES,
    x_prediction.FIGURES,
)


def paper_of(name: str) -> str:
    """Whose figure it is: of "lc3", "lc"."""
    return name.rstrip("0123456789")


def _place(name: str) -> tuple[int, int]:
    """By paper, then by number."""
    paper = paper_of(name)
    return list(PAPERS).index(paper), int(name.removeprefix(paper))


EXPERIMENTS: dict[str, Experiment[Any]] = {
    figure.name: figure for figure in sorted((f for family in FAMILIES for f in family), key=lambda f: _place(f.name))
}


def experiments_named(names: tuple[str, ...]) -> list[Experiment[Any]]:
    """Those of these names, or of whole papers, or all.

    >>> [experiment.name for experiment in experiments_named(("hr5",))]
    ['hr5']
    """
    found: dict[str, Experiment[Any]] = {}
    for name in names:
        chosen = {n: e for n, e in EXPERIMENTS.items() if name in (n, paper_of(n), "all")}
        if not chosen:
            raise ValueError(f"there is no experiment {name!r}; there are all, {', '.join([*PAPERS, *EXPERIMENTS])}")
        found |= chosen
    return sorted(found.values(), key=lambda experiment: _place(experiment.name))
