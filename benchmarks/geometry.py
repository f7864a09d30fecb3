"""What exact geometry costs, in float64 forward passes at as many points as the result has vertices."""

from collections.abc import Iterator

import torch
from networks import colours, he_mlp, images, on_plane, small_cnn, small_resnet18, three_digits
from timing import Ratio, cost, forward, peak_memory, printed, seconds

import regionscope as rs
from regionscope.geometry.planes import Planes
from regionscope.geometry.subdivision import subdivide

POINTS_AT_ONCE = 50_000


def plane_cost(widths: tuple[int, ...], rounds: int = 7) -> tuple[float, int]:
    """Cost of the cells of a plane through three images, in units; and the number of cells."""
    model, plane = he_mlp(*widths), rs.Plane.through(*three_digits(), margin=1.0)
    net = rs.trace(model, three_digits())
    cells = rs.plane_cells(net, plane)
    unit = forward(on_plane(model), torch.from_numpy(cells.vertices), POINTS_AT_ONCE)
    return cost(lambda: rs.plane_cells(net, plane), unit, rounds=rounds), len(cells)


def untraced_cost(widths: tuple[int, ...]) -> float:
    """The same cost of a model that has not been traced before."""
    model, plane = he_mlp(*widths), rs.Plane.through(*three_digits(), margin=1.0)
    vertices = torch.from_numpy(rs.plane_cells(model, plane).vertices)
    unit = forward(on_plane(model), vertices, POINTS_AT_ONCE)
    return cost(lambda: rs.plane_cells(model, plane), unit)


def certified_cost() -> float:
    """Cost of a plane on which every sign is proved, against the same without that promise."""
    net, plane = rs.trace(he_mlp(784, 200, 200, 200, 10), three_digits()), rs.Plane.through(*three_digits(), margin=1.0)
    return cost(lambda: rs.plane_cells(net, plane, certified=True), lambda: rs.plane_cells(net, plane), rounds=5)


def many_planes() -> float:
    """Cost per vertex of 1000 small planes against that of one plane with about as many vertices."""
    net, data = rs.trace(he_mlp(784, 200, 200, 200, 200, 10), images(1)), images(1000)

    def count() -> rs.Estimate:
        return rs.local_region_count(net, data, radius=0.05, generator=torch.Generator().manual_seed(0))

    planes = Planes.around(data, 0.05, generator=torch.Generator().manual_seed(0))
    vertices = len(subdivide(net.frozen(), planes, max_cells=10**7)[0].mesh.xy)
    margins = torch.linspace(0.3, 1.0, 15).tolist()
    candidates = [rs.Plane.through(*three_digits(), margin=m) for m in margins]
    plane = next(p for p in candidates if len(rs.plane_cells(net, p).vertices) >= vertices)
    one = len(rs.plane_cells(net, plane).vertices)
    return cost(count, lambda: rs.plane_cells(net, plane), rounds=7) * one / vertices


def hundred_lines() -> float:
    model = he_mlp(784, 200, 200, 200, 200, 10)
    net, ends = rs.trace(model, images(1)), images(100)
    lines = rs.line_cells(net, torch.zeros_like(ends), ends)
    total = sum(len(line) - 1 for line in lines)
    unit = forward(model.double(), torch.rand(total, 784, dtype=torch.float64), POINTS_AT_ONCE)
    return cost(lambda: rs.line_cells(net, torch.zeros_like(ends), ends), unit, rounds=5)


def million() -> tuple[float, int, int, float]:
    """Cost of a plane with a million cells, these, signs without proof, and the peak memory in GB of such a process."""
    memory = peak_memory(
        f"model, digits = networks.he_mlp(*{MILLION}), networks.three_digits();"
        f"rs.plane_cells(model, rs.Plane.through(*digits, margin={MARGIN}))"
    )
    model, plane = he_mlp(*MILLION), rs.Plane.through(*three_digits(), margin=MARGIN)
    net, found = rs.trace(model, three_digits()), list[rs.PlaneCells]()
    taken = seconds(lambda: found.append(rs.plane_cells(net, plane)))
    unit = seconds(forward(on_plane(model), torch.from_numpy(found[0].vertices), POINTS_AT_ONCE))
    return taken / unit, len(found[0]), found[0].undecided, memory


def convolutional() -> tuple[float, int, float]:
    """Cost of the default plane of a small CNN, its cells, and the peak memory in GB of a process that finds them."""
    digits = three_digits().reshape(3, 1, 28, 28)
    model, plane = small_cnn(), rs.Plane.through(*digits)
    memory = peak_memory(
        "digits = networks.three_digits().reshape(3, 1, 28, 28);"
        "rs.plane_cells(networks.small_cnn(), rs.Plane.through(*digits))"
    )
    net, found = rs.trace(model, digits), list[rs.PlaneCells]()
    taken = seconds(lambda: found.append(rs.plane_cells(net, plane)))
    some = torch.rand(CNN_POINTS, 1, 28, 28, dtype=torch.float64)
    unit = seconds(forward(model.double(), some, 1000)) / CNN_POINTS
    return taken / (unit * len(found[0].vertices)), len(found[0]), memory


def residual() -> tuple[float, int, int, float]:
    """Cost of a plane of a small ResNet18 around an image, its cells, signs without proof, and peak memory in GB."""
    memory = peak_memory(
        f"plane = rs.Plane.around(networks.colours(), {RADIUS}, generator=torch.Generator().manual_seed(0));"
        "rs.plane_cells(networks.small_resnet18(), plane)"
    )
    plane = rs.Plane.around(colours(), RADIUS, generator=torch.Generator().manual_seed(0))
    model, found = small_resnet18(), list[rs.PlaneCells]()
    taken = seconds(lambda: found.append(rs.plane_cells(model, plane)))
    unit = seconds(forward(model.double(), torch.rand(RESNET_POINTS, 3, 32, 32, dtype=torch.float64), 32))
    cells = found[0]
    return taken * RESNET_POINTS / (unit * len(cells.vertices)), len(cells), cells.undecided, memory


CNN_POINTS, RESNET_POINTS = 20_000, 512  # at which the forward pass is timed
RADIUS = 0.02
MILLION, MARGIN = (784, *[200] * 9, 10), 4.0


def first_call() -> float:
    """Seconds of the first call in a new process with an empty cache of compiled code."""
    code = (
        "import tempfile, os; os.environ['NUMBA_CACHE_DIR'] = tempfile.mkdtemp();"
        "import torch, regionscope as rs, time; start = time.perf_counter();"
        "model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU());"
        "rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2)));"
        "print(time.perf_counter() - start)"
    )
    return printed(code)


def ratios() -> Iterator[Ratio]:
    small, cells = plane_cost((784, 64, 64, 64, 10), rounds=15)
    yield Ratio(f"plane of 784-64x3-10, {cells:,} cells, in forward passes at its vertices", small, 10)
    yield Ratio("the same with tracing", untraced_cost((784, 64, 64, 64, 10)), 5)
    large, cells = plane_cost((784, 200, 200, 200, 10))
    yield Ratio(f"plane of 784-200x3-10, {cells:,} cells, in forward passes at its vertices", large, 0.6)
    value, cells, undecided, memory = million()
    name = f"plane of 784-200x9-10, {cells:,} cells, {undecided:,} signs not proved"
    yield Ratio(f"{name}, against the one above, both in forward passes", value / large, 2)
    yield Ratio("the same: peak memory of the whole process in GB", memory, 2.5)
    value, cells, memory = convolutional()
    yield Ratio(f"default plane of a CNN of 11,956 units, {cells:,} cells, in forward passes at its vertices", value, 3)
    yield Ratio("the same: peak memory of the whole process in GB", memory, 2)
    value, cells, undecided, memory = residual()
    name = f"plane of radius {RADIUS:g} of ResNet18 of width 16, {cells:,} cells, {undecided:,} signs not proved"
    yield Ratio(f"{name}, in forward passes at its vertices", value, 3)
    yield Ratio("the same: peak memory of the whole process in GB", memory, 2)
    yield Ratio("plane of 784-200x3-10, every sign proved, against the same without", certified_cost(), 1.5)
    yield Ratio("1000 planes of radius 0.05 of 784-200x4-10, against one plane, per vertex", many_planes(), 3)
    yield Ratio("100 lines of 784-200x4-10, in forward passes at their breakpoints", hundred_lines(), 20)
    yield Ratio("the first plane in a new environment, kernels compiled, in seconds", first_call(), 20)
