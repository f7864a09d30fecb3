"""Shows where a neural network bends: its linear regions, around data, on lines and planes, and while it trains."""

from regionscope.geometry.certificates import Certificate
from regionscope.geometry.line_cells import LineCells, curve_cells, line_cells
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.geometry.sweep import TooManyCells
from regionscope.measures.confirmations import Confirmation, confirmed_crossings
from regionscope.measures.crossings import Crossings, boundary_crossings
from regionscope.measures.deformation import Deformation, neighbourhood_deformation
from regionscope.measures.region_count import local_region_count
from regionscope.network import Affinity, Network, Site
from regionscope.probes import interpolated_points, noisy_points, probe_points, sampled_points, uniform_points
from regionscope.recording import UnsupportedModel
from regionscope.results import Estimate
from regionscope.tracing import trace

__version__ = "0.1.0"

__all__ = [
    # what is this network made of?
    "Affinity",
    "Network",
    "Site",
    "UnsupportedModel",
    "trace",
    # where exactly are its linear regions?
    "Certificate",
    "LineCells",
    "Plane",
    "PlaneCells",
    "TooManyCells",
    "curve_cells",
    "line_cells",
    "plane_cells",
    # how complex is it around data?
    "Confirmation",
    "Crossings",
    "Deformation",
    "Estimate",
    "boundary_crossings",
    "confirmed_crossings",
    "local_region_count",
    "neighbourhood_deformation",
    # where to measure it?
    "interpolated_points",
    "noisy_points",
    "probe_points",
    "sampled_points",
    "uniform_points",
]
