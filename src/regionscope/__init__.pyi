"""The public names, each once, with the file that it is in: `regionscope/__init__.py` reads them here."""

# isort: off

# what is this network made of?
from regionscope.tracing.network import Affinity as Affinity, Network as Network, Site as Site
from regionscope.tracing.ledger import UnsupportedModel as UnsupportedModel
from regionscope.tracing.trace import trace as trace
from regionscope.training.checkpoints import (
    Architecture as Architecture,
    load_model as load_model,
    save_weights as save_weights,
)

# where exactly are its linear regions?
from regionscope.geometry.certificates import Certificate as Certificate, LineCertificate as LineCertificate
from regionscope.geometry.budget import TooMuchMemory as TooMuchMemory
from regionscope.geometry.complexes import TooManyCells as TooManyCells
from regionscope.geometry.line_cells import LineCells as LineCells, curve_cells as curve_cells, line_cells as line_cells
from regionscope.geometry.plane_cells import PlaneCells as PlaneCells, plane_cells as plane_cells
from regionscope.geometry.planes import Plane as Plane
from regionscope.geometry.settling import Undecided as Undecided

# how complex is it around data?
from regionscope.measures.table import MEASURES as MEASURES
from regionscope.measures.comparison import Comparison as Comparison, compare_complexities as compare_complexities
from regionscope.measures.complexity import (
    complexity_density as complexity_density,
    local_complexity as local_complexity,
)
from regionscope.measures.confirmations import Confirmation as Confirmation, confirmed_crossings as confirmed_crossings
from regionscope.measures.crossings import Crossings as Crossings, boundary_crossings as boundary_crossings
from regionscope.measures.deformation import (
    Deformation as Deformation,
    neighbourhood_deformation as neighbourhood_deformation,
)
from regionscope.measures.expected import (
    expected_boundary_length as expected_boundary_length,
    expected_line_regions as expected_line_regions,
)
from regionscope.measures.good import good_units as good_units
from regionscope.measures.rank import local_rank as local_rank, singular_values as singular_values
from regionscope.measures.region_count import local_region_count as local_region_count
from regionscope.measures.variation import total_variation as total_variation
from regionscope.results import Estimate as Estimate, Share as Share

# how robust is it there?
from regionscope.measures.distance import (
    Distance as Distance,
    boundary_distance as boundary_distance,
    certified_radius as certified_radius,
)
from regionscope.measures.robustness import robust_accuracy as robust_accuracy

# how does all that move while it trains?
from regionscope.runs.monitor import Cost as Cost, Monitor as Monitor, log_steps as log_steps
from regionscope.runs.phases import Phase as Phase, Phases as Phases, phases as phases
from regionscope.runs.record import Record as Record
from regionscope.runs.locks import RunLocked as RunLocked
from regionscope.runs.run import (
    Run as Run,
    RunExists as RunExists,
    compared as compared,
    runs_in as runs_in,
)
from regionscope.training.config import Training as Training
from regionscope.training.loop import (
    TrainingFailed as TrainingFailed,
    resume as resume,
    run_model as run_model,
    train as train,
)

# which of the papers' bounds hold on it, and how tightly?
from regionscope.inequalities.bound import Bound as Bound, Term as Term
from regionscope.inequalities.bounds import bounds as bounds
from regionscope.inequalities.change import complexity_change as complexity_change
from regionscope.inequalities.representation import (
    RepresentationCost as RepresentationCost,
    representation_cost as representation_cost,
)
from regionscope.inequalities.univariate import (
    UnivariateCertificate as UnivariateCertificate,
    univariate_certificate as univariate_certificate,
)

# how does one look at it?
from regionscope import plots as plots
from regionscope.app.widget import explore as explore

# where to measure it?
from regionscope.datasets.sets import Dataset as Dataset, dataset as dataset
from regionscope.points import (
    interpolated_points as interpolated_points,
    noisy_points as noisy_points,
    probe_points as probe_points,
    sampled_points as sampled_points,
    uniform_points as uniform_points,
)

__all__: list[str]
__version__: str
