"""Which labels a list holds, how that is said, and lists that nobody declared."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.mutants.selection import Selection, empty_gap, gap_warning, selection_sentences

STRINGENT = Selection(-0.12, 0.16, 0.05, -0.007, 0.046, "in the 2016 screen of the same laboratory")


def test_the_sentence_names_cut_offs_and_unlisted_pairs() -> None:
    assert STRINGENT.sentence("epsilon") == (
        "E[epsilon given listed at <= -0.12 or >= 0.16, p < 0.05]; unlisted pairs of this screen have mean "
        "-0.007, sd 0.046 in the 2016 screen of the same laboratory"
    )
    text = Selection(negative=0.0).sentence("tau")
    assert text.startswith("E[tau given listed at <= 0]; unlisted mutants")
    assert "not known" in text


def test_a_record_holds_everything_and_may_lack_a_selection() -> None:
    assert Selection.from_json(asdict(STRINGENT)) == STRINGENT
    assert Selection.from_json(None) is None
    records = [{"name": "epsilon", "selection": asdict(STRINGENT)}, {"name": "fitness"}]
    assert selection_sentences(records) == {"epsilon": STRINGENT.sentence("epsilon")}


def test_a_column_of_a_whole_screen_is_named_and_its_classes_select_nothing() -> None:
    stringent = {"name": "epsilon_stringent", "of_cross": "listed", "selection": asdict(STRINGENT)}
    negative = {"name": "negative", "of_cross": "negative", "selection": asdict(Selection(negative=-0.08))}
    assert selection_sentences([{"name": "epsilon", "of_cross": "effect"}, stringent, negative]) == {
        "epsilon_stringent": f"column epsilon_stringent only: {STRINGENT.sentence('epsilon_stringent')}"
    }


def test_labels_on_the_cut_offs_and_of_unknown_p_are_met() -> None:
    value, p = np.array([-0.12, -0.119, 0.0, 0.16, 0.3]), np.array([0.05, 0.01, np.nan, 0.051, np.nan])
    assert STRINGENT.met(value).tolist() == [True, False, False, True, True]
    single = STRINGENT.met(value.astype(np.float32), p.astype(np.float32))
    assert single.tolist() == [True, False, False, False, True]
    assert Selection(p=0.05).met(value, p).tolist() == [True, True, True, False, True]


def test_a_label_on_a_cut_off_is_listed() -> None:
    value = np.array([-0.12, -0.119, 0.0, 0.159, 0.16, 0.3], np.float32)
    assert STRINGENT.between(value).tolist() == [False, True, True, True, False, False]
    assert Selection(negative=-0.12).between(value).tolist() == [False, True, True, True, True, True]


@pytest.mark.parametrize("seed", range(5))
def test_a_thresholded_list_has_a_gap_and_a_whole_screen_has_none(seed: int) -> None:
    value = np.random.default_rng(seed).normal(-0.01, 0.1, 3000)
    assert empty_gap(value, one_sided=True) is None
    low, high = empty_gap(value[(value <= -0.12) | (value >= 0.16)]) or (0.0, 0.0)
    assert low == value[value <= -0.12].max()
    assert high == value[value >= 0.16].min()
    negative = value[value <= -0.08]
    assert empty_gap(negative) is None  # growth rates, say, are of one sign
    assert empty_gap(negative, one_sided=True) == (negative.max(), 0.0)
    assert empty_gap(np.append(value[np.abs(value) > 0.1], 0.0)) is None
    assert empty_gap(np.full(3, np.nan), one_sided=True) is None


@given(st.lists(st.floats(-10, 10), max_size=60), st.booleans())
def test_no_label_lies_in_a_gap(value: list[float], one_sided: bool) -> None:
    gap = empty_gap(np.array(value), one_sided=one_sided)
    if gap is not None:
        assert gap[0] <= 0 <= gap[1]
        assert gap[0] < gap[1]
        assert not any(gap[0] < x < gap[1] for x in value)


def test_the_warning_names_phenotype_and_gap() -> None:
    text = gap_warning("epsilon", (-0.12, 0.16))
    assert "no epsilon lies between -0.12 and 0.16" in text
    assert "E[epsilon given listed]" in text
