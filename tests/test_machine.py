"""What is done at once, and what must not be."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regionscope import machine
from regionscope.machine import forward_derivative, free_memory, in_threads, one_core_each, threads_for


def test_threads_differentiate_one_after_the_other() -> None:
    def squared(x: Tensor) -> Tensor:
        time.sleep(0.05)
        return x * x

    def derivative(k: int) -> float:
        return float(forward_derivative(squared, (torch.full((1,), float(k)),), (torch.ones(1),))[1])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(derivative, range(8))) == [2.0 * k for k in range(8)]


def test_little_work_takes_one_thread_and_much_takes_all_and_none_is_left_behind() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threads_for(1000):
            assert torch.get_num_threads() == 1
        with threads_for(10**9):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_parts_come_back_in_their_order_from_several_threads() -> None:
    before, ran = torch.get_num_threads(), set[int]()

    def halved(k: int) -> float:
        ran.add(threading.get_ident())
        time.sleep(0.02 * (3 - k))
        return k / 2

    try:
        torch.set_num_threads(2)
        assert list(in_threads(halved, range(4))) == [0.0, 0.5, 1.0, 1.5]
    finally:
        torch.set_num_threads(before)
    assert len(ran) == 2


def test_memory_is_what_there_is_where_the_system_does_not_say_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = free_memory()
    monkeypatch.setattr(machine, "Path", lambda name: tmp_path / "not-there")
    assert free_memory() >= free
    monkeypatch.delattr(os, "sysconf")
    assert free_memory() == float("inf")


FORKED = """
import os, threading
from regionscope.machine import ProcessLock
forked = []
lock, held, over = ProcessLock(lambda: forked.append(1)), threading.Event(), threading.Event()

def hold():
    with lock():
        held.set()
        over.wait()

threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    with lock(), lock():
        os._exit(len(forked))
status = os.waitpid(child, 0)[1]
over.set()
with lock():
    print(os.waitstatus_to_exitcode(status), len(forked))
"""


def test_what_a_thread_has_locked_is_free_in_a_process_that_was_forked() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1 0\n", done.stderr


@pytest.mark.parametrize("cores", [1, 2])
def test_tasks_are_taken_when_it_is_their_turn_and_answer_in_order(cores: int) -> None:
    before, taken, ahead = torch.get_num_threads(), list[int](), list[int]()

    def tasks() -> Iterator[Callable[[], int]]:
        for number in range(20):
            taken.append(number)
            yield partial(int, number)

    torch.set_num_threads(cores)
    try:
        for answer in one_core_each(tasks()):
            assert answer == len(ahead)
            ahead.append(len(taken) - answer)
    finally:
        torch.set_num_threads(before)
    assert len(ahead) == 20 and max(ahead) <= cores + 1


@pytest.mark.parametrize("how", ["in_threads(time.sleep, [200, 200])", "one_core_each(2 * [lambda: time.sleep(200)])"])
def test_who_is_told_to_stop_does_not_wait_for_threads(how: str) -> None:
    code = (
        "import os, signal, threading, time, torch; from regionscope import cli; from regionscope.cli import commands\n"
        "from regionscope.machine import in_threads, one_core_each; torch.set_num_threads(2)\n"
        f"commands.exit_code_of = lambda _: list({how})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored, as in the background
        "print('begun', flush=True); threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start(); cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)  # or it waits
    assert done.returncode == 130 and done.stderr.startswith("regionscope: stopped")
    assert done.stdout == "begun\n"
