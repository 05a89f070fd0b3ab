"""The whole screen of 2016, in which every score is a row, on files in the published layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.screen_build import HEADER
from tests.sources.yeast.conftest import Folder
from tests.sources.yeast.stored import build, stored
from wildtype.datasets.crosses import expand, split_crosses
from wildtype.mutants.grid import pair_codes
from wildtype.organism import Organism
from wildtype.sources.yeast.datasets import RECIPES
from wildtype.sources.yeast.pair_datasets import FULL_2016

QUERIES = ("YAL002W_sn1", "YAL003W_sn2", "YAL001C_tsq508", "YEL009C_sn4")
ARRAYS = ("YDL227C_dma1", "YBL093C_dma2", "YAL005C_dma3", "YFL039C_tsa4", "YAL002W_dma5")


def cross(query: str, array: str, score: float, p: float, where: str = "DMA30") -> str:
    """Return a row of a table of crosses, of invented numbers."""
    return f"{query}\tq\t{array}\ta\t{where}\t{score}\t{p}\t0.9\t0.9\t0.8\t0.05"


def all_crosses() -> dict[tuple[str, str], str]:
    """Return a row for each of 4 queries × 5 arrays but that of a gene with itself."""
    draw = np.random.default_rng(0)
    return {
        (query, array): cross(query, array, round(draw.normal(0, 0.1), 4), round(draw.random() / 5, 4))
        for query in QUERIES
        for array in ARRAYS
        if query[:7] != array[:7]
    }


def write(folder: Path, rows: Sequence[str], name: str = "SGA_NxN.txt") -> None:
    (folder / name).write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")


def test_every_score_is_a_row_and_nothing_is_unlisted(small: Folder, organism: Organism) -> None:
    rows = all_crosses()
    rows.pop(("YAL003W_sn2", "YBL093C_dma2"))  # a failed cross: it has no score
    write(small.path, [row for pair, row in rows.items() if pair[0] != "YAL001C_tsq508"])
    write(small.path, [row for pair, row in rows.items() if pair[0] == "YAL001C_tsq508"], "SGA_ExN_NxE.txt")
    dataset = build(FULL_2016, small.path, organism)
    assert dataset.targets == ("epsilon", "negative", "positive")
    assert [(p.name, p.of_cross) for p in dataset.phenotypes] == [
        ("epsilon", "effect"),
        ("negative", "negative"),
        ("positive", "positive"),
    ]
    assert dataset.cross_counts() == {"listed": len(rows), "unlisted": 0, "unknown": 1}
    assert len(dataset) == len(rows)
    assert dataset.selection_remarks() == []
    assert any(note.startswith(f"the whole screen: each of {len(rows)} crosses") for note in dataset.notes)
    run, _, _ = expand(
        dataset, dataset.targets, split_crosses(dataset, "random", 0, validation=0.2, test=0.2)
    )
    effect, negative, positive = (run.table.take(run.table.phenotype == at) for at in range(3))
    assert effect.p is not None
    sure = effect.p <= np.float32(0.05)
    np.testing.assert_array_equal(negative.value == 1, (effect.value <= np.float32(-0.08)) & sure)
    np.testing.assert_array_equal(positive.value == 1, (effect.value >= np.float32(0.08)) & sure)
    assert (effect.value < 0).sum() > negative.value.sum() > 0


def test_what_is_set_aside_or_has_no_score_beside_it_is_unknown(small: Folder, organism: Organism) -> None:
    rows = all_crosses()
    # A temperature-sensitive strain of a gene that has a deletion strain, crossed with one array only.
    more = [cross("YAL002W_tsq9", "YDL227C_dma1", -0.3, 0.001)]
    # A strain with a suppressor is no strain of the grid, and a cross at two temperatures is one row.
    more += [cross("YAL001C_S8", "YDL227C_dma1", -0.4, 0.001)]
    more += [cross("YAL003W_sn2", "YBL093C_dma2", -0.2, 0.01, "DMA26")]
    write(small.path, [*rows.values(), *more])
    small.write("costanzo2010_reserved_crosses.tsv", "orf_a\torf_b\nYAL002W\tYFL039C\n")
    small.write("reserved_genes.txt", "YEL009C\n")
    dataset = build(FULL_2016, small.path, organism)
    assert dataset.excluded["cross of a strain with a suppressor mutation"] == 1
    assert dataset.excluded["gene set aside for a blind test"] == 5
    assert dataset.excluded["cross set aside for a blind test"] == 1
    grid, find = dataset.grid, organism.genes.find
    assert grid is not None
    assert dataset.cross_counts()["unlisted"] == 0
    assert dataset.cross_counts()["listed"] == len(dataset)
    assert find("YEL009C") not in grid.strains[0]
    # Of the gene with two strains, the pair of strains that was scored says nothing of the other.
    pairs = np.array([[find("YAL002W"), find("YBL093C")], [find("YAL002W"), find("YFL039C")]])
    assert np.isin(pair_codes(*pairs.T, len(organism.genes)), grid.unknown).all()
    left = [find("YAL002W"), find("YDL227C")]
    assert grid.known(np.array(left[:1]), np.array(left[1:])).tolist() == [True]
    assert dataset.excluded["cross of genes of which another pair of strains has no score"] > 0


def test_without_the_archive_it_is_left_out(small: Folder, organism: Organism) -> None:
    with stored(small.path, organism) as store:
        assert RECIPES[FULL_2016].lacking(store).startswith("the store holds no row of SGA_NxN.txt or ")
    write(small.path, list(all_crosses().values()))
    with stored(small.path, organism) as store:
        assert RECIPES[FULL_2016].lacking(store) == ""


@pytest.mark.parametrize("alleles", ["averaged", "apart"])
def test_every_line_is_kept_or_counted(small: Folder, organism: Organism, alleles: str) -> None:
    rows = list(all_crosses().values())
    write(small.path, rows)
    dataset = build(FULL_2016, small.path, organism, alleles=alleles)
    assert len(dataset) + sum(dataset.excluded.values()) == len(rows)
