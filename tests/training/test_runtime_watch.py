"""What a profile knows beside its phases: the collector, stacks, a thread's clocks, other jobs."""

from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from wildtype.phases import BETWEEN, COLLECTOR, phase
from wildtype.profiling.record import Workload, function_of, profile_record
from wildtype.training.machine_load import MachineLoad
from wildtype.training.phase_recorder import NONE, PhaseRecorder
from wildtype.training.stack_sampler import LOOP, StackSampler, lines_of_thread, stack_of
from wildtype.training.thread_clock import ThreadClock

WORK = Workload("cell_transformer", "tiny", 24, 2, 80, 1000, 64, 4)


def collects_garbage() -> None:
    gc.collect()


@pytest.mark.slow
def test_a_full_collection_is_a_phase_and_its_place_is_known() -> None:
    recorder = PhaseRecorder(warm_up=0)
    kept = [
        [number] for number in range(200_000)
    ]  # something to look through, whatever else the process holds
    with recorder.listening():
        for _ in range(3):
            recorder.begin()
            with phase("head"):
                collects_garbage()
        recorder.finish()
    del kept
    totals = recorder.totals()
    assert totals[COLLECTOR] > totals["head"]
    full = [row for row in profile_record(recorder, WORK, name="a")["collections"] if row["generation"] == 2]
    assert [row["calls"] for row in full] == [1.0]
    assert full[0]["where"].endswith("in collects_garbage")
    assert full[0]["seconds"] * 3 == pytest.approx(totals[COLLECTOR], rel=0.5)


def test_short_collections_are_taken_out_of_the_phase_that_they_happen_in() -> None:
    recorder = PhaseRecorder(warm_up=0)
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(20, 1000, 1000)
    try:
        with recorder.listening():
            recorder.begin()
            with phase("head"):
                kept = [[number] for number in range(20_000)]
            recorder.finish()
    finally:
        gc.set_threshold(*before)
    (row,) = [
        row for row in profile_record(recorder, WORK, name="a")["collections"] if row["generation"] == 0
    ]
    assert row["calls"] > 500
    assert recorder.totals()[COLLECTOR] == pytest.approx(row["seconds"])
    # Clocks of one phase and of the collector's add up to the step: nothing is counted twice.
    assert recorder.step_seconds()[0] == pytest.approx(sum(recorder.totals().values()))
    assert all(seconds >= 0 for seconds in recorder.totals().values())
    assert recorder.cuts_per_step() < 10
    assert len(kept) == 20_000


def test_the_collector_of_another_thread_cuts_nothing() -> None:
    recorder = PhaseRecorder(warm_up=0)
    with recorder.listening():
        recorder.begin()
        thread = threading.Thread(target=collects_garbage)
        thread.start()
        thread.join()
        recorder.finish()
    assert not [row for row in recorder.collections if row[-1] == "collects_garbage"]
    assert recorder.cuts_per_step() == 1.0


class Stops:
    """Lets the sampler look a number of times, at moments that the test chooses."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def wait(self, seconds: float) -> bool:
        self.looks -= 1
        return self.looks < 0


def test_samples_name_functions_of_the_project_and_leave_out_libraries() -> None:
    sampler = StackSampler(phase=lambda: "head")
    sampler._stop = Stops(5)  # type: ignore[assignment]
    sampler._watched, sampler._below = threading.get_ident(), None

    def looks() -> None:
        # In a thread, as it is used; this one waits in Python's library, which is not named.
        thread = threading.Thread(target=sampler._run)
        thread.start()
        thread.join()

    looks()
    # The line is that of `start` or of `join`: a sample may come before this thread waits.
    assert sum(sampler.samples.values()) == 5
    assert sum(sampler.seconds.values()) > 0
    for name, stack in sampler.samples:
        assert name == "head"
        assert [place.partition(" in ")[2] for place in stack[-2:]] == [
            "test_samples_name_functions_of_the_project_and_leave_out_libraries",
            "looks",
        ]
        assert not [place for place in stack if "threading" in place or "stack_sampler" in place]
    assert not sampler.others


def test_short_turns_of_python_are_seen() -> None:
    """A thread that gives the lock away on its own is seen where it was, not only where it waits."""
    before = sys.getswitchinterval()
    sampler = StackSampler(every=0.002, phase=lambda: "head")

    def computes() -> None:
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass

    def waits() -> None:
        threading.Event().wait(0.0002)

    sampler.start()
    try:
        for _ in range(10_000):
            computes()
            waits()
            if sum(sampler.samples.values()) >= 60:
                break
    finally:
        sampler.stop()
    assert sys.getswitchinterval() == before
    # On a busy machine a thread waits for a processor, too, and is then seen more often where it waits.
    assert sum(n for (_, stack), n in sampler.samples.items() if stack[-1].endswith("in computes")) > 5


def test_a_sample_is_taken_while_the_other_thread_stands_still() -> None:
    """Each stack is one that the thread had, from end to end, whatever the collector's callbacks do."""
    ended, before, thresholds = threading.Event(), sys.getswitchinterval(), gc.get_threshold()

    def hands_over(*_: object) -> None:
        time.sleep(0)

    def down(depth: int) -> int:
        return 1 + down(depth - 1) if depth else len([depth, [depth]])

    def works() -> None:
        while not ended.is_set():
            down(20)

    thread = threading.Thread(target=works)
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(hands_over)
    gc.set_threshold(5)
    thread.start()
    try:
        for _ in range(2_000):
            names = [code.co_name for code, _ in lines_of_thread(thread.ident or 0)]
            assert names.count("down") <= 21
            if "down" in names:
                below = names[names.index("down") :]
                assert below == ["down"] * names.count("down") + ["works", "run", *below[-2:]]
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(hands_over)
    assert gc.isenabled()
    assert lines_of_thread(thread.ident or 0) == []


def test_a_thread_that_asks_for_its_own_stack_leaves_the_collector_as_it_is() -> None:
    # Another thread's look at this one puts the collector off for a moment: that is not its state.
    with patch.object(gc, "isenabled", lambda: False):
        assert stack_of(sys._getframe())
    enabled = gc.isenabled()
    gc.enable()
    assert enabled


def test_a_stack_ends_below_the_function_that_listens() -> None:
    def inner() -> tuple[str, ...]:
        return stack_of(sys._getframe(), test_a_stack_ends_below_the_function_that_listens.__code__)

    (place,) = inner()
    assert function_of(place).endswith("test_runtime_watch.py in inner")
    assert function_of(LOOP) == LOOP


def test_a_comprehension_is_named_by_its_function() -> None:
    import sys

    def outer() -> list[tuple[str, ...]]:
        return [
            stack_of(sys._getframe(), test_a_comprehension_is_named_by_its_function.__code__) for _ in "a"
        ]

    (stack,) = outer()
    assert {function_of(place).partition(" in ")[2] for place in stack} == {"outer"}


def test_time_in_no_phase_is_shared_out_as_far_as_samples_saw_it() -> None:
    now = [0.0]
    sampler = StackSampler()
    recorder = PhaseRecorder(warm_up=0, clock=lambda: now[0], cpu_clock=lambda: now[0], sampler=sampler)
    with recorder.listening():
        recorder.begin()
        now[0] += 10.0
        recorder.finish()
    sampler.samples.update({(None, ("a.py:3 in f", "a.py:9 in g")): 6, (None, ()): 3})
    sampler.seconds.update({(None, ("a.py:3 in f", "a.py:9 in g")): 0.6, (None, ()): 0.3})
    sampler.samples = {key: sampler.samples[key] for key in [*sampler.samples][-2:]}
    sampler.seconds = {key: sampler.seconds[key] for key in [*sampler.seconds][-2:]}
    found = profile_record(recorder, WORK, name="a")
    # Of 9 samples, a tenth of the time is at places that none of them saw.
    assert found["unattributed"] == {"mean": pytest.approx(1.0), "share": pytest.approx(0.1)}
    assert found["phases"][BETWEEN]["mean"] == pytest.approx(9.0)
    assert NONE not in found["phases"]
    places = {row["function"]: row for row in found["places"][BETWEEN]}
    assert places["a.py in g"]["seconds"] == places["a.py in f"]["seconds"] == pytest.approx(6.0)
    assert (places["a.py in g"]["where"], places["a.py in g"]["depth"]) == ("a.py:9 in g", 1)
    assert places["a.py in f"]["leaves"] == {"a.py in g": pytest.approx(6.0)}
    assert places[LOOP]["seconds"] == pytest.approx(3.0)


def test_a_profile_run_is_sampled_and_a_training_is_not() -> None:
    from contextlib import nullcontext

    assert PhaseRecorder().sampler is None
    assert PhaseRecorder(inside=nullcontext()).sampler is not None


def test_the_schedulers_delay_is_read_where_the_thread_stood_still(tmp_path: Path) -> None:
    file = tmp_path / "schedstat"
    file.write_text("5000000 2000000000 7\n")
    clock = ThreadClock(str(file))
    clock.open()
    assert clock.delay == 2.0
    file.write_text("5000000 3500000000 9\n")
    clock._wall = float("-inf")  # as if it had stood still ever since
    clock.read()
    assert clock.delay == 3.5
    clock.close()
    missing = ThreadClock(str(tmp_path / "none"))
    missing.open()
    missing.read()
    assert missing.delay == 0.0
    assert missing.cpu > 0


def load_of(
    first: dict[str, float], now: dict[str, float], monkeypatch: pytest.MonkeyPatch, **about: Any
) -> Any:
    names = ("wall", "busy", "steal", "own", "switches", "faults", "load")
    states = iter([dict.fromkeys(names, 0.0) | first, dict.fromkeys(names, 0.0) | now])
    monkeypatch.setattr("wildtype.training.machine_load._counters", lambda: next(states))
    found = MachineLoad()
    found.begin()
    found.step()
    return found.to_json(**{"steps": 10, "delay": 0.0, "seconds": 1.0} | about)


def test_other_processes_make_a_machine_busy_and_the_run_itself_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside = load_of({}, {"wall": 10.0, "busy": 18.0, "own": 8.0}, monkeypatch, delay=0.2)
    assert (beside["other_cores"], beside["own_cores"], beside["busy"]) == (1.0, 0.8, True)
    alone = load_of({}, {"wall": 10.0, "busy": 18.5, "own": 18.0}, monkeypatch, delay=0.4)
    assert (alone["busy"], alone["put_off"]) == (False, 0.4)
    assert alone["probe"] > 0
    assert MachineLoad().to_json(0, 0.0, 0.0) == {}
