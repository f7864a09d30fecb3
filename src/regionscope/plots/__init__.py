"""Pictures of results: each function takes a result and optional axes and returns the axes."""

from regionscope.plots.curves import curve, training
from regionscope.plots.estimates import estimate
from regionscope.plots.lines import line
from regionscope.plots.planes import COLOURS, gradient_limits, regions
from regionscope.plots.scatter import bounds, pairs
from regionscope.plots.style import paper

__all__ = ["COLOURS", "bounds", "curve", "estimate", "gradient_limits", "line", "pairs", "paper", "regions", "training"]
