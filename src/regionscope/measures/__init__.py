"""What can be measured of a network at points of its input space."""

from collections.abc import Callable

from regionscope.measures.complexity import local_complexity
from regionscope.measures.distance import boundary_distance
from regionscope.measures.good import good_units
from regionscope.measures.rank import local_rank
from regionscope.measures.region_count import local_region_count
from regionscope.measures.variation import total_variation
from regionscope.results import Estimate

# what `regionscope measure` and the monitor can be asked for by name
MEASURES: dict[str, Callable[..., Estimate]] = {
    "local_complexity": local_complexity,
    "local_rank": local_rank,
    "total_variation": total_variation,
    "boundary_distance": boundary_distance,
    "good_units": good_units,
    "local_region_count": local_region_count,
}
