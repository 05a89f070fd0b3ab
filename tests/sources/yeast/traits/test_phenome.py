"""Vectors of named traits of single deletions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.traits.phenome import PUBLISHERS, READERS, STUDIES
from wildtype.sources.yeast.traits.tables import JORGENSEN, MATTIAZZI, MULLEDER, VIZEACOUMAR

WHO = "Someone A~Other B, 2002"
MORPHOLOGY = (
    f"orf\thap a | cell area | standard [standard] | {WHO} | quantitative\t"
    f"hap a | buds  | standard [standard] | {WHO} | quantitative\n"
    "YAL001C\t1.5\t\nYAL002W\t2.5\t3.5\nYCL074W\t1\t1\nDOUBLE\t1\t1\nYAR044W\t\t4.5\nYAR042W\t5.5\t\n"
)


def values(found: Measurements) -> set[tuple[str, str, str, float]]:
    return {(r.genotype.perturbations[0].gene, r.trait, r.replicate, r.value) for r in found.records()}


def test_every_trait_of_every_strain_is_read_and_the_others_are_counted(small, genes: GeneIndex) -> None:
    small.write(VIZEACOUMAR.file, MORPHOLOGY)
    readings: list[ReadReport] = []
    found = READERS["vizeacoumar2010"](small.path, genes, collect=readings.append)
    assert values(found) == {
        ("YAL001C", "cell area", "", 1.5),
        ("YAL002W", "cell area", "", 2.5),
        ("YAL002W", "buds", "", 3.5),
        ("YAR042W", "buds", "YAR044W", 4.5),
        ("YAR042W", "cell area", "YAR042W", 5.5),
    }
    (reading,) = readings
    assert (reading.rows, reading.kept, reading.renamed) == (12, 5, 1)
    assert reading.dropped == {"unknown gene": 2, "ambiguous gene name": 2, "no value": 3}
    assert found.studies[0].files.keys() == {VIZEACOUMAR.file}
    assert found.phenotypes[0].level == "trait"


def test_the_order_of_rows_does_not_matter(small, genes: GeneIndex) -> None:
    small.write(VIZEACOUMAR.file, MORPHOLOGY)
    first = values(READERS["vizeacoumar2010"](small.path, genes))
    head, *lines = MORPHOLOGY.splitlines()
    small.write(VIZEACOUMAR.file, "\n".join([head, *reversed(lines)]) + "\n")
    assert values(READERS["vizeacoumar2010"](small.path, genes)) == first


def test_amino_acids_have_their_own_layout(small, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = READERS["mulleder2016"](small.path, genes, collect=readings.append)
    assert ("YAL002W", "alanine", "", 3.4) in values(found)
    assert len(found) == 4
    assert readings[0].dropped == {"unknown gene": 2}


def test_cell_size_of_heterozygous_deletions_is_no_deletion(small, genes: GeneIndex) -> None:
    head = f"orf\thap ? | cell size | YPD [standard] | {WHO}\thet | cell size | YPD [standard] | {WHO}\n"
    small.write(JORGENSEN.file, head + "YAL001C\t\t-0.1\nYAL002W\t0.2\t\n")
    found = {
        r.genotype.perturbations[0].gene: r for r in READERS["jorgensen2002"](small.path, genes).records()
    }
    assert found["YAL001C"].genotype.perturbations[0].kind == PerturbationKind.REDUCED_EXPRESSION
    assert found["YAL002W"].genotype.perturbations[0].kind == PerturbationKind.DELETION
    assert found["YAL002W"].trait == ""
    assert found["YAL002W"].environment.medium == "YPD"


def test_the_publishers_own_file_names_are_found_uncompressed(small, genes: GeneIndex) -> None:
    small.remove(MATTIAZZI.file)
    (small.path / "mattiazzi_usaj_andrews_2020_value.txt").write_text(
        f"orf\thap a | patches (Sac6) | standard | None | {WHO}\nYAL002W\t0.25\n", encoding="utf-8"
    )
    found = READERS["mattiazzi2020"](small.path, genes)
    assert values(found) == {("YAL002W", "patches (Sac6)", "", 0.25)}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_missing_file_is_named_with_where_to_get_it(small, genes: GeneIndex, study) -> None:
    (small.path / study.file).unlink(missing_ok=True)
    with pytest.raises(SourceError, match=rf"{study.remote.name} is not in .*fetch it from https://"):
        READERS[study.name](small.path, genes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gene\thap a | x | y | A~B, 2002\nYAL001C\t1\n", "line 1: received the header"),
        ("orf\tcell area\nYAL001C\t1\n", "line 1: received the heading 'cell area'"),
        (MORPHOLOGY.replace("2.5", "two"), "line 3: received 'two', expected a number"),
        (MORPHOLOGY.replace("2.5", "1e308"), "line 3: received '1e308', expected a number"),
        (MORPHOLOGY.replace("\t2.5", ""), "line 3: received 2 fields, expected 3"),
        (MORPHOLOGY.split("YAL001C")[0], "holds no rows"),
        (MORPHOLOGY.split("YAL001C")[0] + "YCL074W\t1\t1\n", "no value of a gene"),
    ],
)
def test_another_layout_is_refused(small, genes: GeneIndex, text: str, message: str) -> None:
    small.write(VIZEACOUMAR.file, text)
    with pytest.raises(SourceError, match=message):
        READERS["vizeacoumar2010"](small.path, genes)


def test_publishers_are_complete_and_secure() -> None:
    for publisher in PUBLISHERS:
        (remote,) = publisher.files
        assert all(url.startswith("https://") for url in remote.urls)
        assert publisher.published["strains"] > 400
    assert len({publisher.name for publisher in PUBLISHERS}) == len(STUDIES)


def by_gene(found: Measurements, trait: str) -> dict[str, float]:
    rows = np.flatnonzero(found.trait == found.traits.index(trait))
    return {found.genes[found.gene[found.offsets[r]]]: float(found.value[r]) for r in rows}


@pytest.mark.real
@pytest.mark.parametrize(
    ("study", "entries", "kept", "traits"),
    [
        (VIZEACOUMAR, 3796 * 90, 298_350, 90),
        (MATTIAZZI, 4580 * 17, 75_733, 17),
        (MULLEDER, 4173 * 19, 79_287, 19),
        (JORGENSEN, 441 * 2, 440, 1),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_real_counts(
    mirror: Path, real_genes: GeneIndex, study, entries: int, kept: int, traits: int
) -> None:
    readings: list[ReadReport] = []
    found = READERS[study.name](mirror, real_genes, collect=readings.append)
    assert (readings[0].rows, readings[0].kept, len(found)) == (entries, kept, kept)
    assert set(readings[0].dropped) <= {"no value"}  # all row names are current ORFs
    assert len(found.traits) == traits


@pytest.mark.real
def test_real_mutants_look_as_known(mirror: Path, real_genes: GeneIndex) -> None:
    size = by_gene(READERS["jorgensen2002"](mirror, real_genes), "")
    names = {
        name: real_genes.names[real_genes.find(name)] for name in ("WHI5", "SFP1", "CLN3", "GDH1", "CAR1")
    }
    assert size[names["WHI5"]] == pytest.approx(-0.22, abs=0.01)
    assert size[names["SFP1"]] == pytest.approx(-0.39, abs=0.01)
    assert size[names["CLN3"]] == pytest.approx(0.44, abs=0.01)
    acids = READERS["mulleder2016"](mirror, real_genes)
    assert by_gene(acids, "glutamate")[names["GDH1"]] == pytest.approx(4.7, abs=0.1)
    assert by_gene(acids, "arginine")[names["CAR1"]] == pytest.approx(1.6, abs=0.1)
    area = by_gene(READERS["vizeacoumar2010"](mirror, real_genes), "unbud cell mean area")
    assert area[names["WHI5"]] < np.median(list(area.values())) == pytest.approx(16.1, abs=0.1)
    penetrance = READERS["mattiazzi2020"](mirror, real_genes)
    assert penetrance.value.min() >= 0
    assert penetrance.value.max() <= 1
