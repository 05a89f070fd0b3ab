"""Mutants × columns to measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from wildtype.datasets.records import (
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.traits.headings import STRAINS
from wildtype.sources.yeast.traits.matrix import Column, Mutants, measure, sift, told_apart, without_gene

GENES = GeneIndex(
    ["YAL001C", "YAL002W", "YAL003W"], {"YAL002W": "VPS8"}, {"YAL003W": ["TWO"], "YAL001C": ["TWO"]}
)
STUDY = Study(name="one", publication=Publication(citation="Somebody 2000"), organism="yeast")
CELL = PhenotypeDefinition(name="growth", min_order=0)
TRAIT = PhenotypeDefinition(name="shape", level="trait")
DRUG = Environment(compounds=(Compound(name="drug"),))


def test_every_number_carries_its_mutant_column_and_replicate() -> None:
    mutants = Mutants(np.array([0, 2, 1]), np.array([0, 2, 2, 3]), ("", "wt 1", "s2"))
    columns = [
        Column(CELL, environment=DRUG),
        Column(TRAIT, "round", strain=STRAINS["het"], replicate="probe 7"),
    ]
    value = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, 6.0]])
    se = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = list(measure(STUDY, GENES, mutants, columns, value, se=se).records())
    assert [(r.value, r.se, r.replicate, r.trait) for r in found] == [
        (1.0, 0.1, "", ""),
        (2.0, 0.2, "probe 7", "round"),
        (3.0, 0.3, "wt 1", ""),
        (6.0, 0.6, "s2 / probe 7", "round"),
    ]
    assert [[p.gene for p in r.genotype.perturbations] for r in found] == [
        ["YAL001C", "YAL003W"],
        ["YAL001C", "YAL003W"],
        [],
        ["YAL002W"],
    ]
    assert found[0].environment.id == DRUG.id
    assert found[3].environment.id == Environment().id
    assert found[0].genotype.perturbations[0].kind == PerturbationKind.DELETION
    assert found[3].genotype.perturbations[0].dose == 0.5
    assert found[3].reference == "diploid"


def test_equal_records_of_different_columns_become_one() -> None:
    columns = [Column(PhenotypeDefinition(name="shape", level="trait"), trait) for trait in ("a", "b", "c")]
    built = measure(STUDY, GENES, Mutants.single(np.array([1]), [""]), columns, np.ones((1, 3)))
    assert len(built.phenotypes) == 1
    assert built.traits == ("a", "b", "c")


def test_only_strains_of_the_same_gene_are_told_apart() -> None:
    assert told_apart(np.array([0, 1, 0, -1, -1]), list("abcde")) == ("a", "", "c", "", "")


NAMES = st.sampled_from(["YAL001C", "vps8", "YAL003W", "TWO", "YBR999W"])


@given(st.data())
def test_every_entry_is_kept_or_counted_and_no_number_changes(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 4)))
    value = data.draw(npst.arrays(np.float64, shape, elements=st.sampled_from([np.nan, -1.5, 0.0, 2.0])))
    names = data.draw(st.lists(NAMES, min_size=shape[0], max_size=shape[0]))
    unused = np.array(data.draw(st.lists(st.booleans(), min_size=shape[1], max_size=shape[1])))
    matched = match_genes(names, GENES)
    usable = np.isfinite(value) & matched.found[:, None] & ~unused
    arguments = {"rows": without_gene(matched), "columns": {"unused": unused}, "renamed": matched.renamed}
    if not usable.any():
        with pytest.raises(SourceError, match="no value of a gene"):
            sift(Path("file.tsv"), "test", value, **arguments)
        return
    left, reading = sift(Path("file.tsv"), "test", value, **arguments)
    assert reading.rows == value.size == reading.kept + sum(reading.dropped.values())
    assert reading.kept == usable.sum()
    assert reading.dropped.get("unknown gene", 0) == names.count("YBR999W") * shape[1]
    assert reading.dropped.get("ambiguous gene name", 0) == names.count("TWO") * shape[1]
    columns = [Column(TRAIT, f"t{j}") for j in range(shape[1])]
    built = measure(STUDY, GENES, Mutants.single(matched.position, names), columns, left)
    found = {(r.genotype.perturbations[0].gene, r.trait, r.replicate, r.value) for r in built.records()}
    expected = {
        (GENES.names[matched.position[i]], f"t{j}", names[i], value[i, j]) for i, j in np.argwhere(usable)
    }
    assert found == expected
