"""Small ReLU networks that are carried as sums of rows once nothing is too narrow for that."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """Convolutions, one with a stride, norms and a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm, self.second = nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1)
        self.narrow, self.last = nn.Conv2d(4, 6, 3, stride=2), nn.Linear(24, 3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        x = torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + x)
        return self.last(torch.relu(self.narrow(x)).flatten(1))  # type: ignore[no-any-return]


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3)), (5,)),
    "residual": (Residual, (2, 6, 6)),
}  # fmt: skip
