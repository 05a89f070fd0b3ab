from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import same_places, tiny_organism
from wildtype.errors import DatasetError
from wildtype.organism.storage import FORMAT, read_organism, save_organism


def test_round_trip(tmp_path: Path) -> None:
    organism = tiny_organism()
    save_organism(organism, tmp_path / "o")
    again = read_organism(tmp_path / "o")
    assert again.genes == organism.genes
    assert again.genes.standard == organism.genes.standard
    assert again.graphs.sha256 == organism.graphs.sha256
    assert [r.dropped for r in again.graphs.values()] == [r.dropped for r in organism.graphs.values()]
    np.testing.assert_array_equal(again.features["shape"].values, organism.features["shape"].values)
    assert again.essential is not None
    assert organism.essential is not None
    np.testing.assert_array_equal(again.essential, organism.essential)
    assert organism.coordinates is not None
    assert same_places(again, organism)


@pytest.mark.parametrize("damage", ["truncate", "flip", "version", "missing"])
def test_damage_is_one_sentence(tmp_path: Path, damage: str) -> None:
    save_organism(tiny_organism(), tmp_path / "o")
    arrays, record = tmp_path / "o" / "arrays.npz", tmp_path / "o" / "organism.json"
    if damage == "truncate":
        record.write_text(record.read_text()[:100])
    elif damage == "flip":
        content = bytearray(arrays.read_bytes())
        content[200] ^= 1
        arrays.write_bytes(content)
    elif damage == "version":
        record.write_text(record.read_text().replace(f'"format_version": {FORMAT}', '"format_version": 99'))
    else:
        arrays.unlink()
    with pytest.raises(DatasetError, match="build it") as caught:
        read_organism(tmp_path / "o")
    assert "\n" not in str(caught.value)


def test_dubious_genes_are_kept_and_may_be_unknown(tmp_path: Path) -> None:
    dubious = np.arange(24) == 3
    save_organism(replace(tiny_organism(), dubious=dubious), tmp_path / "o")
    again = read_organism(tmp_path / "o")
    np.testing.assert_array_equal(again.dubious, dubious)
    np.testing.assert_array_equal(again.restrict(np.array([3, 5])).dubious, [True, False])
    np.testing.assert_array_equal(again.add_gene("NEW").dubious, [*dubious, False])
    save_organism(tiny_organism(), tmp_path / "unknown")
    assert read_organism(tmp_path / "unknown").dubious is None
    with pytest.raises(DatasetError, match="dubious has shape"):
        replace(tiny_organism(), dubious=dubious[:5])
