"""What importing the library costs a script that imports torch and numpy anyway."""

from collections.abc import Iterator

from timing import Ratio, printed

BEYOND = "import torch, numpy, time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def ratios() -> Iterator[Ratio]:
    best = min(printed(BEYOND.format("import regionscope")) for _ in range(5))
    yield Ratio("seconds of importing regionscope beyond torch and numpy", best, 0.3)
