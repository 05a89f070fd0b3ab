"""Expression and morphology in their publishers' layouts, from file to dataset."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.profiles import profile_dataset
from wildtype.datasets.stages.build import build_dataset
from wildtype.errors import DatasetError
from wildtype.organism import GeneGraphs, GeneIndex, Organism
from wildtype.sources.yeast.traits import calmorph, deleteome

GENES = ["YAL001C", "YAL002W", "YAL003W", "YAL005C"]
TRAITS = ["A101_A", "C11-1_A", "D14-1_A1B"]


@pytest.fixture
def yeast() -> Organism:
    return Organism(
        "yeast", GeneIndex(GENES, {"YAL001C": "TFC3", "YAL002W": "VPS8"}, organism="yeast"), GeneGraphs([])
    )


def write(folder: Path, name: str, lines: list[list[str]]) -> None:
    with gzip.open(folder / f"{name}.gz", "wt") as handle:
        handle.writelines("\t".join(line) + "\n" for line in lines)


def expression(folder: Path) -> None:
    """Two strains of TFC3, one of VPS8 and a wild type; YAL003W has two reporters, YAL005C none."""
    experiments = ["tfc3-del-1 vs. wt", "tfc3-del-2 vs. wt", "vps8-del vs. wt", "wt-matA vs. wt"]
    reporters = [
        ("r1", "YAL001C"),
        ("r2", "YAL002W"),
        ("r3", "YAL003W"),
        ("r4", "YAL003W"),
        ("r5", "YZZ001C"),
    ]
    lines = [
        ["reporterId", "systematicName", "geneSymbol", *(name for name in experiments for _ in range(3))],
        ["dataType"] * 3 + ["M", "A", "p_value"] * len(experiments),
    ]
    for i, (reporter, gene) in enumerate(reporters):
        numbers = [text for j in range(4) for text in (f"{10 * i + j}", "9", "0.5")]
        lines.append([reporter, gene, "s", *numbers])
    write(folder, deleteome.DELETEOME.name, lines)


def test_expression_is_one_row_per_mutant(tmp_path: Path, yeast: Organism) -> None:
    expression(tmp_path)
    measured = deleteome.read(tmp_path, yeast.genes)
    dataset = profile_dataset(measured, yeast, name="expression")
    assert dataset.table.sets() == [(0,), (1,)]
    assert dataset.table.profiles is not None
    expected = [[0.5, 10.5, 25.5, np.nan], [2.0, 12.0, 27.0, np.nan]]
    np.testing.assert_array_equal(dataset.table.profiles, np.array(expected, np.float32))
    assert dataset.excluded == {"measurement of the wild type": 4}
    assert dataset.policies["replicates"].startswith("the mean; 4 numbers")
    (mrna,) = dataset.phenotypes
    assert (mrna.name, mrna.form, mrna.source) == ("mRNA", "gene", "kemmeren2014:mRNA")


def test_morphology_is_one_vector(tmp_path: Path, yeast: Organism) -> None:
    for file, key, names in (
        (calmorph.MUTANTS, "ORF", ["yal001c", "yal002w"]),
        (calmorph.WILD_TYPES, "NAME", ["his3_1"]),
    ):
        rows = [[name, *(f"{i + 10 * j}" for j in range(len(TRAITS)))] for i, name in enumerate(names)]
        write(tmp_path, file.name, [[key, *TRAITS], *rows])
    measured = calmorph.read(tmp_path, yeast.genes)
    dataset = build_dataset(measured, yeast, name="morphology")
    assert [p.name for p in dataset.phenotypes] == [f"CalMorph:{trait}" for trait in TRAITS]
    assert {p.group for p in dataset.phenotypes} == {"CalMorph"}
    with pytest.raises(DatasetError, match="number per gene, found none"):
        profile_dataset(measured, yeast, name="morphology")
