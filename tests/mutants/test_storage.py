from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.mutants import MutantTable
from wildtype.mutants.storage import COLUMNS, read_table, save_table


@pytest.mark.parametrize("dose", [None, [1.0, np.nan, 2.0]])
def test_round_trip(tmp_path: Path, dose: list[float] | None) -> None:
    table = MutantTable.from_sets([[0, 2], [1]], value=[0.5, np.nan], condition=[0, 1], dose=dose)
    save_table(table, tmp_path / "t.npz", {"part": np.array([2, 0])})
    again, beside = read_table(tmp_path / "t.npz")
    for name in COLUMNS:
        assert getattr(again, name).dtype == getattr(table, name).dtype
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    assert (again.dose is None) == (dose is None)
    if dose is not None:
        np.testing.assert_array_equal(again.dose, table.dose)  # type: ignore[arg-type]
    assert {name: values.tolist() for name, values in beside.items()} == {"part": [2, 0]}


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", gene=np.zeros(0))
    with pytest.raises(KeyError, match="offsets"):
        read_table(tmp_path / "t.npz")
