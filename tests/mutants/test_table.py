from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.errors import ConfigError, GeneSetError, ShapeError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.table import COLUMNS, read_table, save_table

SETS = st.lists(st.sets(st.integers(0, 9), max_size=4).map(sorted), min_size=1, max_size=20)


def table(sets: list[list[int]]) -> MutantTable:
    return MutantTable.from_sets(sets, value=np.arange(len(sets)), kind=Kind.ABSENT)


@given(SETS, st.data())
@settings(deadline=None)
def test_take_equals_python(sets: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=30))
    taken = table(sets).take(np.array(rows, np.int64))
    assert taken.sets() == [tuple(sets[r]) for r in rows]
    assert taken.value.tolist() == [float(r) for r in rows]


@given(SETS, st.sets(st.integers(0, 12)))
def test_inside_equals_python(sets: list[list[int]], among: set[int]) -> None:
    inside = table(sets).inside(sorted(among))
    assert inside.tolist() == [set(genes) <= among for genes in sets]


@given(SETS)
@settings(deadline=None)
def test_set_id_is_equal_exactly_for_equal_sets(sets: list[list[int]]) -> None:
    ids = table(sets).set_id
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            assert (ids[i] == ids[j]) == (a == b)


@given(SETS, SETS)
@settings(deadline=None)
def test_concatenate_equals_python(a: list[list[int]], b: list[list[int]]) -> None:
    assert MutantTable.concatenate([table(a), table(b)]).sets() == [tuple(s) for s in a + b]


def test_genes_are_sorted_and_kinds_follow() -> None:
    t = MutantTable.build([5, 2], [0, 2], kind=[Kind.ABSENT, Kind.REDUCED], dose=[1.0, 2.0])
    assert t.gene.tolist() == [2, 5]
    assert t.kind.tolist() == [Kind.REDUCED, Kind.ABSENT]
    assert t.dose is not None
    assert t.dose.tolist() == [2.0, 1.0]


P = [0.5, np.nan, 0.01]


def test_p_values_follow_their_rows() -> None:
    t = MutantTable.from_sets([[1, 0], [], [2]], p=P)
    assert t.p is not None
    assert t.p.dtype == np.float32
    np.testing.assert_array_equal(t.p, np.float32(P))
    for rows in ([2, 0, 2], np.array([True, False, True])):
        taken = t.take(rows)
        np.testing.assert_array_equal(taken.p, t.p[rows])  # type: ignore[arg-type]
    np.testing.assert_array_equal(t.remap(np.array([2, 0, 1])).p, t.p)  # type: ignore[arg-type]
    assert MutantTable.from_matrix([[1, 0]], p=[1e-50]).p == 0
    assert t.take([]).p.size == 0  # type: ignore[union-attr]


def test_tables_with_and_without_p_values_and_doses_are_put_together() -> None:
    plain, valued = MutantTable.from_sets([[0, 1], [2]]), MutantTable.from_sets([[1, 0], [], [2]], p=P)
    dosed = MutantTable.from_sets([[3]], dose=[2.0])
    whole = MutantTable.concatenate([plain, valued, dosed])
    np.testing.assert_array_equal(whole.p, np.float32([np.nan, np.nan, *P, np.nan]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole.dose, np.float32([np.nan] * 6 + [2]))  # type: ignore[arg-type]
    bare = MutantTable.concatenate([plain, plain])
    assert bare.p is None
    assert bare.dose is None
    assert plain.take([0]).p is None


def test_p_values_of_another_length_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"p has shape \(2,\), expected \(3,\)"):
        MutantTable.from_sets([[0], [1], [2]], p=[0.1, 0.2])


def test_repeated_gene_is_refused_with_its_row() -> None:
    with pytest.raises(GeneSetError, match="row 1 perturbs gene 3 twice"):
        MutantTable.from_sets([[1, 2], [3, 3]])


def test_a_mutant_never_loses_a_gene() -> None:
    with pytest.raises(GeneSetError, match="1 perturbed genes are not in the other"):
        table([[0, 1]]).remap(np.array([0, -1]))


def test_remap_follows_names() -> None:
    assert table([[0, 1], [2]]).remap(np.array([7, 3, 0])).sets() == [(3, 7), (0,)]


@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 2, 1, 2]])
def test_bad_offsets_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ShapeError, match="offsets"):
        MutantTable.build([1, 2], offsets)


def test_matrix_needs_one_order() -> None:
    with pytest.raises(ShapeError, match=r"\[1, 2\]"):
        table([[1], [1, 2]]).matrix(2)


def test_kinds_have_fixed_numbers() -> None:
    # Stored datasets and checkpoints hold these numbers.
    assert [(kind.name, int(kind)) for kind in Kind] == [
        ("ABSENT", 0),
        ("REDUCED", 1),
        ("PRESENT", 2),
        ("ADDED", 3),
        ("OVEREXPRESSED", 4),
    ]


def test_unknown_kind_names_the_known() -> None:
    assert Kind.parse(" Reduced ") is Kind.REDUCED
    with pytest.raises(ConfigError, match="'deleted' is not a kind"):
        Kind.parse("deleted")


@pytest.mark.parametrize("dose", [None, [1.0, np.nan, 2.0]])
@pytest.mark.parametrize("p", [None, [np.nan, 0.01]])
def test_round_trip(tmp_path: Path, dose: list[float] | None, p: list[float] | None) -> None:
    table = MutantTable.from_sets([[0, 2], [1]], value=[0.5, np.nan], condition=[0, 1], dose=dose, p=p)
    save_table(table, tmp_path / "t.npz", {"part": np.array([2, 0])})
    again, beside = read_table(tmp_path / "t.npz")
    for name in COLUMNS:
        assert getattr(again, name).dtype == getattr(table, name).dtype
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    for name, expected in (("dose", dose), ("p", p)):
        column = getattr(again, name)
        assert (column is None) == (expected is None)
        if column is not None:
            assert column.dtype == np.float32
            np.testing.assert_array_equal(column, getattr(table, name))
    assert {name: values.tolist() for name, values in beside.items()} == {"part": [2, 0]}


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", gene=np.zeros(0))
    with pytest.raises(KeyError, match="offsets"):
        read_table(tmp_path / "t.npz")


def test_a_file_from_before_p_values_still_loads(tmp_path: Path) -> None:
    """Written by hand as it was before tables had p-values, which is as it is without any today."""
    table = MutantTable.from_sets([[0, 2], [1]], value=[0.5, 0.25])
    columns = ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd")
    np.savez(tmp_path / "old.npz", **{name: getattr(table, name) for name in columns})
    again, beside = read_table(tmp_path / "old.npz")
    assert again.p is None
    assert beside == {}
    save_table(again, tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as stored:
        assert stored.files == list(columns)


def test_weights_go_with_their_rows(tmp_path: Path) -> None:
    plain = table([[0], [1, 2], [3]])
    one = MutantTable.from_sets([[4], [5]], value=[1, 2], weight=[2.5, 1])
    assert plain.weight is None
    assert plain.weights is None
    both = MutantTable.concatenate([plain, one])
    assert both.weight is not None
    # Rows of a table without weights stand for themselves.
    assert both.weight.tolist() == [1, 1, 1, 2.5, 1]
    assert both.take([3, 0]).weight.tolist() == [2.5, 1]  # type: ignore[union-attr]
    moved = both.remap(np.arange(6)[::-1].copy())
    assert moved.weight.tolist() == both.weight.tolist()  # type: ignore[union-attr]
    save_table(both, tmp_path / "t.npz")
    again, _ = read_table(tmp_path / "t.npz")
    assert again.weight.tolist() == both.weight.tolist()  # type: ignore[union-attr]
    assert MutantTable.concatenate([plain, plain]).weight is None
    with pytest.raises(ShapeError, match="weight has shape"):
        MutantTable.from_sets([[4], [5]], weight=[2.5])
