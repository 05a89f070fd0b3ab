from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.mutants import MutantTable
from wildtype.mutants.storage import COLUMNS, read_table, save_table


@pytest.mark.parametrize("dose", [None, [1.0, np.nan, 2.0]])
@pytest.mark.parametrize("p", [None, [np.nan, 0.01]])
def test_round_trip(tmp_path: Path, dose: list[float] | None, p: list[float] | None) -> None:
    table = MutantTable.from_sets([[0, 2], [1]], value=[0.5, np.nan], condition=[0, 1], dose=dose, p=p)
    save_table(table, tmp_path / "t.npz", {"part": np.array([2, 0])})
    again, beside = read_table(tmp_path / "t.npz")
    for name in COLUMNS:
        assert getattr(again, name).dtype == getattr(table, name).dtype
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    for name, given in (("dose", dose), ("p", p)):
        column = getattr(again, name)
        assert (column is None) == (given is None)
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
