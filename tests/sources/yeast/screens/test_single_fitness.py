"""Fitness of single mutants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.single_fitness import (
    FITNESS,
    FITNESS_SOURCE,
    by_gene,
    deleted_genes,
    fitness_block,
    read_strains,
)


def test_strain_suffix_and_allele_name_say_what_was_done(small, genes: GeneIndex) -> None:
    strains = read_strains(small.path, genes)
    kinds = [Kind(k).name for k in strains.kind[:6]]
    assert kinds == ["ABSENT", "ABSENT", "REDUCED", "REDUCED", "REDUCED", "REDUCED"]
    assert np.flatnonzero(strains.suppressor).tolist() == [7, 8]
    deleted = [genes.names[i] for i in np.flatnonzero(deleted_genes(strains, len(genes)))]
    assert deleted == ["YAL002W", "YAR042W", "YDL227C"]  # the suppressor strain of YAL005C does not count


def test_deletions_go_before_alleles_and_an_allele_counts_once(small, genes: GeneIndex) -> None:
    value, sd = by_gene(read_strains(small.path, genes), len(genes))
    assert value[genes.find("VPS8")] == pytest.approx([0.9, 0.9])  # not the DAmP allele's 0.5
    assert sd[genes.find("VPS8"), 0] == pytest.approx(0.05)
    assert value[genes.find("TFC3"), 0] == pytest.approx(
        (0.8285 + 0.9395) / 2
    )  # tsa508 and tsq508 are one allele
    assert value[genes.find("ACT1")] == pytest.approx([0.6, np.nan], nan_ok=True)
    assert np.isnan(value[genes.find("SSA1")]).all()
    assert value[genes.find("YAR042W"), 0] == pytest.approx(1.01)  # listed as YAR044W


def test_the_block_is_marked_as_measured(small, genes: GeneIndex) -> None:
    block, reading = fitness_block(read_strains(small.path, genes), len(genes))
    assert block.measured == (FITNESS_SOURCE,)
    assert reading.rows == 12 == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W_sn1\t", "YAL002W_xx1\t", "line 2: received 'YAL002W_xx1', expected a strain of YAL002W"),
        ("YAL002W_sn1\tYAL002W", "YAL002W_sn1\tYAL003W", "line 2: .*expected a strain of YAL003W"),
        ("act1-101\tNaN\tNaN\t0.6", "act1-101\tNaN\tNaN\tsick", "line 8: received 'sick', expected a number"),
        (
            "act1-101\tNaN\tNaN\t0.6\tNaN",
            "act1-101\tNaN\tNaN\t0.6\t-1",
            "line 8: .*standard deviation of at least 0",
        ),
        ("(26°)\t", "(26)\t", "line 1: received the header"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(FITNESS, old, new)
    with pytest.raises(SourceError, match=message):
        read_strains(small.path, genes)


@pytest.mark.real
def test_real_strains(mirror: Path, real_genes: GeneIndex) -> None:
    strains = read_strains(mirror, real_genes)
    assert len(strains) == 10859
    assert int(np.isfinite(strains.value[:, 0]).sum()) == 10224
    value, _ = by_gene(strains, len(real_genes))
    assert np.nanmean(value[:, 0]) == pytest.approx(0.91, abs=0.02)
    alleles = [0.5439, 0.9207, 0.6956, 0.7312, 0.8919, 0.8861, 0.8109]  # cdc24-11, -4, -5, -1, -2, -3, -h
    assert value[real_genes.find("CDC24"), 0] == pytest.approx(np.mean(alleles))
