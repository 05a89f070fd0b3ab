"""The recorder with clocks and events that the tests move by hand."""

import gc
from contextlib import nullcontext

import pytest

from wildtype.phases import phase
from wildtype.training.phase_recorder import NONE, PhaseRecorder, seconds_per_cut


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clocks():
    gc.disable()  # a collection would be a phase more
    yield Clock(), Clock()
    gc.enable()


def recorder(clocks, **settings):
    wall, cpu = clocks
    return PhaseRecorder(clock=wall, cpu_clock=cpu, **{"warm_up": 0, **settings})


def work(clocks, wall, cpu=None):
    clocks[0].now += wall
    clocks[1].now += wall if cpu is None else cpu


def test_phases_exclude_each_other_and_the_rest_is_unattributed(clocks):
    found = recorder(clocks)
    with found.listening():
        for _ in range(2):
            found.begin()
            work(clocks, 1.0)
            with phase("encode wild type"):
                work(clocks, 2.0)
                with phase("graph prior"):
                    work(clocks, 4.0)
                work(clocks, 8.0, 1.0)
            with phase("head"):
                work(clocks, 16.0)
            work(clocks, 0.5)
        found.finish()
    assert found.steps == 2
    assert found.totals() == {"encode wild type": 20.0, "graph prior": 8.0, "head": 32.0, NONE: 3.0}
    assert found.totals("cpu")["encode wild type"] == 6.0
    assert found.step_seconds().tolist() == [31.5, 31.5]
    assert found.phase_seconds("head").tolist() == [16.0, 16.0]
    assert found.timelines()[-1] == [
        (NONE, 0.0, 1.0),
        ("encode wild type", 1.0, 3.0),
        ("graph prior", 3.0, 7.0),
        ("encode wild type", 7.0, 15.0),
        (NONE, 15.0, 15.0),
        ("head", 15.0, 31.0),
        (NONE, 31.0, 31.5),
    ]


def test_what_lies_between_steps_belongs_to_none(clocks):
    found = recorder(clocks)
    with found.listening():
        found.begin()
        with phase("head"):
            work(clocks, 1.0)
        with found.apart("validation"), phase("head"):
            work(clocks, 64.0)
        work(clocks, 32.0)
        found.begin()
        with phase("head"):
            work(clocks, 1.0)
        found.finish()
        found.finish()
    assert found.totals() == {"head": 2.0, NONE: 0.0}
    assert found.outside == {"validation": 64.0}


def test_steps_that_warm_up_do_not_count_and_watch(clocks):
    entered = []

    class Inside(nullcontext):
        def __enter__(self):
            entered.append(("in", found.begun))

        def __exit__(self, *error):
            entered.append(("out", found.begun))

    asked = iter(range(100))
    found = recorder(clocks, warm_up=4, high_water=lambda: float(next(asked)), inside=Inside())
    with found.listening():
        for step in range(6):
            found.begin()
            with phase("head"):
                work(clocks, 1.0 if step >= 4 else 100.0)
        found.finish()
    assert found.totals()["head"] == 2.0
    assert (found.begun, found.steps) == (6, 2)
    assert entered == [("in", 2), ("out", 2)]
    assert set(found.peaks) == {"head", NONE}
    assert found.peaks["head"] == 6.0  # three readings each in steps 3 and 4, the first only to begin


class FakeGpu:
    """A stream that runs behind: events are passed when the test says so."""

    def __init__(self):
        self.recorded = []
        self.passed = 0

    def event(self):
        made = FakeEvent(self, len(self.recorded))
        self.recorded.append(made)
        return made


class FakeEvent:
    def __init__(self, gpu, number):
        self.gpu, self.number = gpu, number

    def query(self):
        return self.number < self.gpu.passed

    def elapsed_time(self, end):
        assert self.query()
        assert end.query()
        return 1000.0 * (end.number - self.number)


def test_on_a_gpu_events_are_read_when_they_have_passed_and_not_before(clocks):
    gpu, waits = FakeGpu(), []

    def wait():
        waits.append(len(gpu.recorded))
        gpu.passed = len(gpu.recorded)

    found = recorder(clocks, event=gpu.event, wait=wait)
    with found.listening():
        for _ in range(3):
            found.begin()
            with phase("head"):
                pass
        assert found.steps == 0
        gpu.passed = 4
        found.begin()
        assert found.steps == 1
        found.finish()
    assert len(waits) == 1
    assert found.steps == 4
    assert found.totals()["head"] == 3.0  # from one event to the next is a second
    assert found.totals()[NONE] == 3 * 2.0 + 1.0


def test_an_empty_recorder_says_nothing(clocks):
    found = recorder(clocks)
    found.finish()
    assert (found.totals(), found.steps, found.cuts_per_step()) == ({}, 0, 0.0)


def test_what_a_cut_costs_is_measured_without_a_word_to_others(clocks):
    seconds_per_cut.cache_clear()
    found = recorder(clocks)
    with found.listening():
        found.begin()
        assert 0 < seconds_per_cut(200) < 0.01
        found.finish()
    assert found.cuts_per_step() == 1.0


def test_only_the_last_steps_keep_the_order_of_their_phases(clocks):
    found = recorder(clocks)
    with found.listening():
        for _ in range(9):
            found.begin()
        found.finish()
    assert [len(times.pieces) for times in found._kept] == [0] * 6 + [1] * 3
