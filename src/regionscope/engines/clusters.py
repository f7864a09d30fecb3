"""Tasks on a cluster of Ray: one that is there, by its address, or one on this machine that is started and stopped."""

from collections.abc import Generator
from typing import Any

from regionscope.engines.tasks import Ended, Tasks
from regionscope.integrations import extra

RETRIES = 3  # of a task whose worker is lost


def on_ray(tasks: Tasks, address: str | None = None) -> Generator[Ended, None, None]:
    """Tasks as Ray places them, by the cores and GPUs that each needs; a task whose worker is lost is tried again.

    What tasks write must lie where all machines of the cluster can write.
    """
    with extra("ray"):
        import ray
    started = not ray.is_initialized()
    if started:
        ray.init(address or "local", include_dashboard=False if address is None else None, log_to_driver=False)
    try:
        needs = {"num_cpus": tasks.cpus, "num_gpus": tasks.gpus, "max_retries": RETRIES}
        function = ray.remote(**needs)(tasks.function)
        running: dict[Any, int] = {function.remote(item): place for place, item in enumerate(tasks.items)}
        try:
            while running:
                (future,), _ = ray.wait(list(running), num_returns=1)
                place = running.pop(future)
                try:
                    yield Ended(place, ray.get(future))
                except ray.exceptions.RayTaskError as error:
                    yield Ended(place, error=error.cause or error)
                except ray.exceptions.RayError as error:  # the worker was lost too often
                    yield Ended(place, error=error)
        finally:
            for future in running:
                ray.cancel(future, force=True)
    finally:
        if started:
            ray.shutdown()
