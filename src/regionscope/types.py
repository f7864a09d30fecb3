"""Names for what arrays hold, and for what users give."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Ints = NDArray[np.int32]
Words = NDArray[np.uint64]  # bits, 64 at a time
Bools = NDArray[np.bool_]

Model = nn.Module | Callable[[Tensor], Any]
Array = Tensor | NDArray[Any]  # of torch or of numpy
Numbers = float | Sequence[float] | Array  # one or several
Data = Array | Iterable[Any]  # points, or batches of them as loaders give
