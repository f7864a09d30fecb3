"""Shows where a neural network bends: its linear regions, around data, on lines and planes, and while it trains."""

from regionscope.datasets.sets import Dataset, dataset
from regionscope.geometry.certificates import Certificate, LineCertificate
from regionscope.geometry.complexes import TooManyCells
from regionscope.geometry.line_cells import LineCells, curve_cells, line_cells
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.geometry.settling import Undecided
from regionscope.inequalities.bound import Bound, Term
from regionscope.inequalities.bounds import bounds
from regionscope.inequalities.change import complexity_change
from regionscope.inequalities.representation import RepresentationCost, representation_cost
from regionscope.inequalities.univariate import UnivariateCertificate, univariate_certificate
from regionscope.measures.comparison import Comparison, compare_complexities
from regionscope.measures.complexity import complexity_density, local_complexity
from regionscope.measures.confirmations import Confirmation, confirmed_crossings
from regionscope.measures.crossings import Crossings, boundary_crossings
from regionscope.measures.deformation import Deformation, neighbourhood_deformation
from regionscope.measures.distance import Distance, boundary_distance, certified_radius
from regionscope.measures.expected import expected_boundary_length, expected_line_regions
from regionscope.measures.good import good_units
from regionscope.measures.rank import local_rank, singular_values
from regionscope.measures.region_count import local_region_count
from regionscope.measures.robustness import robust_accuracy
from regionscope.measures.table import MEASURES
from regionscope.measures.variation import total_variation
from regionscope.points import interpolated_points, noisy_points, probe_points, sampled_points, uniform_points
from regionscope.results import Estimate
from regionscope.runs.monitor import Cost, Monitor, log_steps
from regionscope.runs.phases import Phase, Phases, phases
from regionscope.runs.run import Run, RunExists, RunLocked, compared, runs_in
from regionscope.tracing.network import Affinity, Network, Site
from regionscope.tracing.recording import UnsupportedModel
from regionscope.tracing.trace import trace
from regionscope.training.checkpoints import Architecture, load_model, save_weights
from regionscope.training.config import Training
from regionscope.training.loop import TrainingFailed, resume, run_model, train

__version__ = "0.1.0"

__all__ = [
    # what is this network made of?
    "Affinity",
    "Architecture",
    "Network",
    "Site",
    "UnsupportedModel",
    "load_model",
    "save_weights",
    "trace",
    # where exactly are its linear regions?
    "Certificate",
    "LineCells",
    "LineCertificate",
    "Plane",
    "PlaneCells",
    "TooManyCells",
    "Undecided",
    "curve_cells",
    "line_cells",
    "plane_cells",
    # how complex is it around data?
    "MEASURES",
    "Comparison",
    "Confirmation",
    "Crossings",
    "Deformation",
    "Estimate",
    "boundary_crossings",
    "compare_complexities",
    "complexity_density",
    "confirmed_crossings",
    "expected_boundary_length",
    "expected_line_regions",
    "good_units",
    "local_complexity",
    "local_rank",
    "local_region_count",
    "neighbourhood_deformation",
    "singular_values",
    "total_variation",
    # how robust is it there?
    "Distance",
    "boundary_distance",
    "certified_radius",
    "robust_accuracy",
    # how does all that move while it trains?
    "Cost",
    "Monitor",
    "Phase",
    "Phases",
    "Run",
    "RunExists",
    "RunLocked",
    "Training",
    "TrainingFailed",
    "compared",
    "log_steps",
    "resume",
    "run_model",
    "phases",
    "runs_in",
    "train",
    # which of the papers' bounds hold on it, and how tightly?
    "Bound",
    "RepresentationCost",
    "Term",
    "UnivariateCertificate",
    "bounds",
    "complexity_change",
    "representation_cost",
    "univariate_certificate",
    # where to measure it?
    "Dataset",
    "dataset",
    "interpolated_points",
    "noisy_points",
    "probe_points",
    "sampled_points",
    "uniform_points",
]
