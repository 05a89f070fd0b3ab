from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import AmbiguousGeneError, GeneSetError, UnknownGeneError
from wildtype.inference.sets import parse_set
from wildtype.organism import Coordinates, GeneIndex
from wildtype.organism.genes import systematic

GENES = GeneIndex(
    ["YAL001C", "YBR088C", "YCL061C", "YMR190C"],
    standard={"YAL001C": "TFC3", "YBR088C": "POL30", "YMR190C": "SGS1"},
    aliases={"YAL001C": ["FUN24", "TSV115"], "YCL061C": ["MRC1", "YCL060C"], "YBR088C": ["TSV115"]},
    organism="yeast",
    descriptions={"YMR190C": "unwinds DNA", "YBR088C": "", "YXX000C": "is not here"},
)


@pytest.mark.parametrize("name", ["YMR190C", "SGS1", "sgs1", "ymr190c", " SGS1 "])
def test_every_name_of_a_gene_finds_it(name: str) -> None:
    assert GENES.find(name) == 3


def test_alias_finds_its_gene() -> None:
    assert GENES.names[GENES.find("MRC1")] == "YCL061C"


def test_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UnknownGeneError, match=r"'YAL01C' is not in organism 'yeast' \(4 genes\); did you mean YAL001C"
    ):
        GENES.find("YAL01C")


def test_ambiguous_alias_names_both_genes() -> None:
    with pytest.raises(AmbiguousGeneError, match="YAL001C, YBR088C"):
        GENES.find("TSV115")


def test_systematic_name_wins_over_an_alias() -> None:
    index = GeneIndex(["A", "B"], aliases={"B": ["A"]})
    assert index.find("A") == 0


def test_set_refuses_empty_and_repeated_under_another_name() -> None:
    with pytest.raises(GeneSetError, match="row 3 is empty"):
        GENES.find_set([], what="row 3")
    with pytest.raises(GeneSetError, match="YMR190C more than once"):
        GENES.find_set(["SGS1", "YMR190C"])


def test_repeated_systematic_name_is_refused() -> None:
    with pytest.raises(GeneSetError, match="unique"):
        GeneIndex(["A", "B", "A"])


@pytest.mark.parametrize(("name", "made"), [("ARG5,6", "ARG5+6"), ("a; b", "a+b"), (" 18S rRNA", "18S+rRNA")])
def test_a_systematic_name_has_no_mark_that_separates_genes(name: str, made: str) -> None:
    assert systematic(name) == systematic(made) == made
    assert parse_set(f"HO,{systematic(name)}") == ["HO", made]


def test_hash_depends_on_names_and_order_only() -> None:
    plain = GeneIndex(GENES.names)
    assert plain.sha256 == GENES.sha256
    assert GeneIndex(GENES.names[::-1]).sha256 != GENES.sha256


def test_round_trip_and_damage() -> None:
    record = json.loads(json.dumps(GENES.to_json()))
    again = GeneIndex.from_json(record)
    assert again == GENES
    assert again.find("FUN24") == 0
    record["names"][0] = "YAL002W"
    with pytest.raises(GeneSetError, match="does not match its sha256"):
        GeneIndex.from_json(record)


def test_descriptions_follow_their_genes() -> None:
    assert GENES.descriptions == {"YMR190C": "unwinds DNA"}
    again = GeneIndex.from_json(json.loads(json.dumps(GENES.to_json())))
    longer = again.restrict(np.array([3, 0])).extended(["NEW1"], descriptions={"NEW1": "glows"})
    assert longer.names == ("YMR190C", "YAL001C", "NEW1")
    assert longer.descriptions == {"YMR190C": "unwinds DNA", "NEW1": "glows"}
    assert (longer.organism, longer.extended([], organism="mine").organism) == ("yeast", "mine")
    older = {key: value for key, value in GENES.to_json().items() if key != "descriptions"}
    assert GeneIndex.from_json(older).descriptions == {}


@given(st.permutations(range(4)))
def test_mapping_follows_names_not_positions(order: list[int]) -> None:
    other = GENES.restrict(np.array(order))
    mapping = GENES.mapping_to(other)
    assert [other.names[i] for i in mapping] == list(GENES.names)


def test_mapping_marks_what_is_missing() -> None:
    assert GENES.mapping_to(GENES.restrict(np.array([2]))).tolist() == [-1, -1, 0, -1]


def test_genes_that_share_bases_overlap() -> None:
    start = np.array([1.0, 5.0, 2.0, 9.0, 6.0, 1.0, np.nan, 2.0])
    end = np.array([8.0, 6.0, 3.0, 10.0, 7.0, 4.0, np.nan, 3.0])
    chromosome = np.array([1, 1, 1, 1, 2, 2, 0, 0])
    places = Coordinates(chromosome, start, end, np.ones(8, np.int8))
    assert places.overlapping().tolist() == [True, True, True, *[False] * 5]
    # Without the long first gene, nobody overlaps.
    assert not places.overlapping(np.arange(8) > 0).any()


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 20), st.integers(0, 9)), max_size=12))
def test_overlaps_are_those_of_all_pairs(genes: list[tuple[int, int, int]]) -> None:
    chromosome, start, length = (np.array([g[i] for g in genes], float) for i in range(3))
    places = Coordinates(chromosome.astype(np.int64), start, start + length, np.ones(len(genes), np.int8))
    expected = [
        any(
            i != j and a[0] == b[0] and a[1] <= b[1] + b[2] and b[1] <= a[1] + a[2]
            for j, b in enumerate(genes)
        )
        for i, a in enumerate(genes)
    ]
    assert places.overlapping().tolist() == expected
