"""Steps by which the points of a batch come to know of each other, or of how many they are: no model may have them."""

from collections.abc import Callable

from program_writer import POINTS, Writer, need


def along_points(*lines: str) -> Callable[[Writer], None]:
    """Lines that compute with rows (n, k), one a point, which `r` holds."""

    def step(w: Writer) -> None:
        w(f"r = {w.layout.rows('h')}", *(line.format(k=w.layout.numbers) for line in lines))
        w(f"h = {w.layout.from_rows('r')}")

    return step


def on_the_axis(line: str) -> Callable[[Writer], None]:
    """A line that computes along the axis p of the points, wherever that is."""

    def step(w: Writer) -> None:
        need(w.layout.axes[w.layout.points] == (POINTS,))
        w(f"p = {w.dim(w.layout.points)}", f"h = {line}")

    return step


def wrongly_unfolded(w: Writer) -> None:
    """Token-major taken for point-major."""
    a = w.layout.points
    axis = w.layout.axes[a]
    need(len(axis) == 2)
    sizes = w.layout.placed(a, axis[1:], axis[:1]).sizes()
    w(f"h = h.reshape({', '.join(sizes)})")
    w.layout = w.layout.placed(a, axis[1:], axis[:1])


MIXING: dict[str, Callable[[Writer], None]] = {
    "running total": on_the_axis("h.cumsum(p)"),
    "running product": on_the_axis("h.cumprod(p)"),
    "running maximum": on_the_axis("h.cummax(p).values"),
    "less the first point": on_the_axis("h - h.narrow(p, 0, 1)"),
    "less the last point": on_the_axis("h - 0.5 * h.narrow(p, n - 1, 1)"),
    "the first point for all": on_the_axis("h.narrow(p, 0, 1).expand_as(h) + 0.1 * h"),
    "the next point": on_the_axis("h + h.roll(1, p)"),
    "the next point by index": on_the_axis("h.index_select(p, (torch.arange(n) + 1) % n)"),
    "the next point by pieces": on_the_axis("torch.cat([h.narrow(p, 1, n - 1), h.narrow(p, 0, 1)], p)"),
    "in reverse": on_the_axis("h - h.flip(p)"),
    "sorted": on_the_axis("h.sort(p).values"),
    "less the mean": on_the_axis("h - h.mean(p, keepdim=True)"),
    "plus the sum": on_the_axis("h + 0.1 * h.sum(p, keepdim=True)"),
    "less the largest": on_the_axis("h - h.amax(p, keepdim=True)"),
    "differences": on_the_axis("torch.diff(h, dim=p, prepend=torch.zeros_like(h.narrow(p, 0, 1)))"),
    "less the mean of the transposed": on_the_axis("h - h.transpose(0, p).mean(0).unsqueeze(0).transpose(0, p)"),
    "number in the batch": along_points("r = r + torch.arange(n, dtype=r.dtype)[:, None]"),
    "every other one": along_points("r = r * (torch.arange(n) % 2 + 1)[:, None]"),
    "a table of positions": along_points("t = torch.linspace(-1, 1, 64, dtype=r.dtype)", "r = r + t[:n, None]"),
    "triangle": along_points("r = torch.ones(n, n, dtype=r.dtype).tril() @ r"),
    "attention to all": along_points("r = r + torch.full((n, n), 1 / n, dtype=r.dtype) @ r"),
    "another shape": along_points("r = r.reshape({k}, n).t()"),
    "another shape, first": along_points("r = r.t().reshape(n, {k})"),
    "batch norm": along_points("r = F.batch_norm(r, None, None, training=True)"),
    "neighbours": along_points("r = F.avg_pool1d(r.t()[None], 3, 1, 1)[0].t()"),
    "convolution": along_points(
        "r = F.conv1d(r.t()[None], torch.ones({k}, 1, 3, dtype=r.dtype), padding=1, groups={k})[0].t()"
    ),
    "largest of neighbours": along_points("r = F.max_pool1d(r.t()[None], 3, 1, 1)[0].t()"),
    "the first written": along_points("r = r.clone()", "r[0] = 0.5"),
    "the last written": along_points("r = r.clone()", "r[-1] *= 2"),
    "every other written": along_points("r = r.clone()", "r[::2] += 1"),
    "all but the first written": along_points("r = r.clone()", "r[1:] += r[:-1].clone()"),
    "times the number": along_points("r = r * n"),
    "plus the number": along_points("r = r + 1 / n"),
    "a choice by the number": along_points("r = 2 * r if n > 2 else r"),
    "wrongly unfolded": wrongly_unfolded,
}
