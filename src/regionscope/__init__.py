"""Shows where a neural network bends: its linear regions, around data, on lines and planes, and while it trains."""

from regionscope.network import Affinity, Network, Site
from regionscope.recording import UnsupportedModel
from regionscope.tracing import trace

__version__ = "0.1.0"

__all__ = [
    # what is this network made of?
    "Affinity",
    "Network",
    "Site",
    "UnsupportedModel",
    "trace",
]
