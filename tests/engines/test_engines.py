"""Engines: the same results wherever tasks run; what fails is named, what is lost is tried again, nothing stays."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from task_functions import doubled, killed_always, killed_once, reciprocal, stopped_by, threads

from regionscope import engines
from regionscope.engines.tasks import TasksFailed

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.mark.parametrize("engine", ["serial", "processes", "processes:1"])
def test_results_come_in_the_order_of_the_items(engine: str) -> None:
    assert engines.map(doubled, [3, 1, 2], engine=engine) == [6, 2, 4]


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_failing_task_is_named_and_the_others_finish(engine: str) -> None:
    with pytest.raises(
        TasksFailed, match="1 of 3 tasks failed, the others are done: zero: ZeroDivisionError"
    ) as failed:
        engines.map(reciprocal, [1, 0, 2], engine=engine, names=["one", "zero", "two"])
    assert list(failed.value.failures) == ["zero"] and failed.value.done == 2


@pytest.mark.parametrize(("engine", "stop"), [("serial", KeyboardInterrupt), ("processes:1", SystemExit)])
def test_a_task_that_was_told_to_stop_stops_all(engine: str, stop: type[BaseException]) -> None:
    with pytest.raises(stop):
        engines.map(stopped_by, [stop, stop], engine=engine)


def test_what_failed_can_be_sent_to_other_processes() -> None:
    failed = pickle.loads(pickle.dumps(TasksFailed({"zero": ZeroDivisionError("no")}, 2)))
    assert str(failed) == "1 of 3 tasks failed, the others are done: zero: ZeroDivisionError: no"
    assert list(failed.failures) == ["zero"] and failed.done == 2


@pytest.mark.parametrize("cores", [1, 2])
def test_a_process_has_as_many_threads_as_its_task_needs_cores(cores: int) -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    assert engines.map(threads, [0], engine="processes", cpus=cores) == [(cores, str(cores))]
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_a_task_whose_process_is_lost_is_tried_again(tmp_path: Path) -> None:
    assert engines.map(killed_once, [str(tmp_path / "mark")], engine="processes") == ["done"]


def test_a_task_that_always_loses_its_process_is_named_and_the_others_finish() -> None:
    with pytest.raises(TasksFailed, match=r"1 of 3 tasks failed.*task 1: WorkerLost: its process ended 2 times"):
        engines.map(killed_always, [0, 1, 2], engine="processes")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_a_map_that_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import task_functions\nfrom regionscope import engines\n"
        "if __name__ == '__main__': engines.map(task_functions.slow, ['a', 'b'], engine='processes:2')"
    )
    (tmp_path / "main.py").write_text(code)
    path = os.pathsep.join([str(HELPERS), *filter(None, sys.path)])
    whole = subprocess.Popen(
        [sys.executable, "main.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )  # fmt: skip
    marks = [tmp_path / "a", tmp_path / "b"]
    while not all(mark.exists() and mark.read_text() for mark in marks):
        assert whole.poll() is None
        time.sleep(0.05)
    whole.send_signal(number)
    whole.communicate(timeout=300)
    assert whole.returncode != 0
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{mark.read_text()}").exists() for mark in marks):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.1)


@pytest.mark.parametrize("engine", ["threads", "serial:2", "processes:0", "processes:two", ""])
def test_engines_that_there_are_not_are_refused(engine: str) -> None:
    with pytest.raises(ValueError, match="engine must be serial, processes, processes:COUNT, ray or ray:ADDRESS"):
        engines.map(doubled, [1], engine=engine)


def test_a_local_cluster_of_ray_does_all_of_it_and_is_gone_after(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    path = os.pathsep.join([str(HELPERS), *filter(None, sys.path)])
    code = (
        "import ray, task_functions as t\nfrom regionscope import engines\n"
        "from regionscope.engines.tasks import TasksFailed\n"
        "ray.init('local', num_cpus=2, include_dashboard=False, log_to_driver=False)\n"
        "assert engines.map(t.doubled, [3, 1, 2], engine='ray') == [6, 2, 4]\n"
        f"assert engines.map(t.killed_once, [{str(tmp_path / 'mark')!r}], engine='ray') == ['done']\n"
        "try: engines.map(t.reciprocal, [1, 0, 2], engine='ray', names=['one', 'zero', 'two'])\n"
        "except TasksFailed as failed: assert list(failed.failures) == ['zero'] and failed.done == 2\n"
        "else: raise AssertionError('it did not fail')\n"
        "assert ray.is_initialized(), 'a cluster that was there stays'\n"
        "ray.shutdown()\n"
        "assert engines.map(t.doubled, [4], engine='ray') == [8]\n"
        "assert not ray.is_initialized()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert ray.__version__
