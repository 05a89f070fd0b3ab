"""Messages stay readable, whatever was typed or found in a file."""

from __future__ import annotations

import pickle

import pytest

from wildtype import errors
from wildtype.errors import (
    LONGEST_WORD,
    ConfigError,
    OutputError,
    WildtypeError,
    did_you_mean,
    reason_of,
    shown,
)

EVERY = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, WildtypeError)]


@pytest.mark.parametrize("kind", EVERY)
def test_words_that_nobody_can_read_are_cut(kind: type[WildtypeError]) -> None:
    path = "/" + "p" * (LONGEST_WORD - 2)
    assert str(kind(f"{path}: mend it")) == f"{path}: mend it"
    text = str(kind(f"'{'9' * 5_000}' is no setting: use 'model.layers'"))
    assert text.endswith("9...' is no setting: use 'model.layers'")
    assert len(text) < LONGEST_WORD + 50
    again = pickle.loads(pickle.dumps(kind("row 3: what?")))
    assert (type(again), str(again)) == (kind, "row 3: what?")


def test_what_others_say_becomes_a_part_of_a_sentence() -> None:
    assert reason_of(ValueError("  one\n two")) == "one"
    assert reason_of(ValueError("\n")) == "ValueError"
    assert len(reason_of(ValueError("x" * 999))) == 200
    assert shown("x" * 99) == repr("x" * 57 + "...")
    assert isinstance(OutputError("full"), OSError)
    assert isinstance(ConfigError("wrong"), ValueError)


def test_near_names_are_offered_and_far_ones_are_not() -> None:
    known = ["YAL001C", "fitness", "epsilon"]
    assert did_you_mean("epsilom", known, "known") == "did you mean epsilon?"
    assert did_you_mean("yal001W", known, "known") == "did you mean YAL001C?"
    assert did_you_mean("growth", known, "known: all") == "known: all"
    assert did_you_mean("ab", ["abc", "abd"], "", count=1) in ("did you mean abc?", "did you mean abd?")
