"""Families of columns: every name has the one that says what it is made of."""

from __future__ import annotations

from typing import get_args

import pytest

from wildtype.evidence.column_families import (
    FAMILIES,
    Family,
    closed_forms,
    family_of,
    not_of,
    rising,
    stand_ins,
)

EXPECTED: dict[Family | None, list[str]] = {
    None: ["unseen genes", "reduced strains"],
    "effects": ["effect low", "crosses high", "rate negative low", "additive", "listed mean low"],
    "low_rank": ["rank 20", "rank 120", "completed", "profile cosine"],
    "paths": ["paths 1 negative", "paths 3 either"],
    "kernel_ridge": [
        "kernel completed low", "kernel rank both", "two-step ridge", "effect by kernel high",
        "rate positive of similar genes low", "listed size by kernel low",
    ],
    "profile_neighbours": ["one by profile", "both by mixed weight", "one by mixed completed high"],
    "similar_genes": ["one by physical weight", "both by like go_process", "one by like learned completed"],
    "traits": ["alike physical", "alike joint", "essential.essential high", "codon_bias.gc low"],
    "screens": ["screen yeast-emap-collins2007", "screen yeast-emap-collins2007 by kernel"],
    "pooled": ["screen pooled completed", "screen pooled by kernel", "screen pooled alike"],
}  # fmt: skip


@pytest.mark.parametrize("family", EXPECTED)
def test_a_column_is_of_the_family_that_its_name_tells(family: Family | None) -> None:
    assert {family_of(name) for name in EXPECTED[family]} == {family}


def test_every_family_can_be_left_out() -> None:
    assert {*FAMILIES, "traits"} == {*get_args(Family)} == {*EXPECTED} - {None}
    names = [name for of in EXPECTED.values() for name in of]
    for family in get_args(Family):
        left = [name for name, kept in zip(names, not_of([family], names), strict=True) if not kept]
        assert left == EXPECTED[family]
    assert not_of([], names).all()
    assert not_of(get_args(Family), names).sum() == 2


def test_answers_by_themselves_and_units_go_with_the_name() -> None:
    names = ["completed", "alike physical", "one by physical", "one by physical weight", "rate negative low"]
    assert closed_forms(names).tolist() == [True, False, False, False, True]
    assert rising(names).tolist() == [True, False, True, False, False]


def test_what_another_screen_lets_expect_stands_in_for_what_it_did_not_measure() -> None:
    of_a = ["screen a", "screen a completed", "screen a by kernel", "screen a alike"]
    names = ["completed", "screen b", *of_a, "screen pooled completed", "screen pooled by kernel"]
    assert stand_ins(names).tolist() == [-1, -1, 3, 4, -1, -1, 7, -1]
