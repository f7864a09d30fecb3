"""Work shared by the processes of torch.distributed; alone, everything is done here."""

from typing import Any

import torch.distributed as dist


def leads() -> bool:
    """Whether this process writes: the only one, or rank 0."""
    return not _several() or dist.get_rank() == 0


def _several() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def leaders(mine: Any) -> Any:
    """What rank 0 has."""
    of_all = [mine]
    if _several():
        dist.broadcast_object_list(of_all, src=0)
    return of_all[0]


def own_part() -> slice:
    """Which of many points are for this process."""
    return slice(dist.get_rank(), None, dist.get_world_size()) if _several() else slice(None)


def own_number() -> int:
    """Of this process, from 0 on."""
    return dist.get_rank() if _several() else 0


def from_every_process(mine: Any) -> list[Any]:
    """What every process has, by rank."""
    if not _several():
        return [mine]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return everyone
