"""Phases: names, nesting, listeners."""

import pytest

from wildtype.errors import ConfigError
from wildtype.phases import PHASES, current, listening, no_phase, phase


class Heard:
    def __init__(self):
        self.changes = []

    def change(self, phase):
        self.changes.append(phase)


def test_a_listener_is_told_of_every_change_of_the_innermost_phase():
    heard = Heard()
    with phase("head"):
        pass
    with listening(heard):
        with phase("encode wild type"), phase("graph prior"):
            assert current() == "graph prior"
        with phase("head"):
            assert current() == "head"
    with phase("loss"):
        pass
    assert heard.changes == ["encode wild type", "graph prior", "encode wild type", None, "head", None]
    assert current() is None


def test_a_phase_ends_where_an_error_leaves_it():
    heard = Heard()
    with pytest.raises(ValueError, match="inside"), listening(heard), phase("backward"):
        raise ValueError("inside")
    assert current() is None
    assert heard.changes == ["backward", None]


def test_a_listener_that_fails_leaves_no_phase_open():
    class Deaf:
        def change(self, phase):
            raise OSError("no event")

    with pytest.raises(OSError, match="no event"), listening(Deaf()), phase("head"):
        pass
    assert current() is None
    with pytest.raises(OSError, match="no event"), listening(Deaf()):
        try:
            phase("head").__enter__()
        finally:  # as a profiler does that is told of the end of what did not begin
            phase("head").__exit__(None, None, None)
    assert current() is None


def test_what_is_no_phase_interrupts_one():
    heard = Heard()
    with listening(heard), phase("optimizer"), no_phase, phase("backward"):
        pass
    assert heard.changes == ["optimizer", None, "backward", None, "optimizer", None]


def test_an_unknown_phase_is_an_error_whether_anybody_listens_or_not():
    with pytest.raises(ConfigError, match=r"there is no phase 'forwards'; known: wait for loader, fetch"):
        phase("forwards")
    assert len(set(PHASES)) == len(PHASES)
