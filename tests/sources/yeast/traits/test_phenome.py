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
from wildtype.sources.text import match_genes, read_rows
from wildtype.sources.yeast.traits.phenome import (
    BRESLOW,
    DEUTSCHBAUER,
    GIAEVER,
    JORGENSEN,
    MATTIAZZI,
    MULLEDER,
    PUBLISHERS,
    READERS,
    SCREENS,
    STUDIES,
    TRAITS,
    VIZEACOUMAR,
)

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


TWO_PLOIDIES = (
    f"orf\thet | growth (pool) | YPD [standard] | {WHO}\thom | growth (pool) | YPD [standard] | {WHO}\t"
    f"hom | growth (pool) | minimal complete [standard] | {WHO}\n"
    "YAL001C\t0.9\t\t\nYAL002W\t1.01\t0.7\t0.6\nYCL074W\t1\t1\t1\nDOUBLE\t1\t\t1\n"
)


def rows(found: Measurements) -> set[tuple[str, int, str, float]]:
    return {
        (r.genotype.perturbations[0].gene, int(r.genotype.perturbations[0].kind), str(r.environment), r.value)
        for r in found.records()
    }


def test_ploidy_and_medium_come_from_the_headings(small, genes: GeneIndex) -> None:
    small.write(DEUTSCHBAUER.file, TWO_PLOIDIES)
    readings: list[ReadReport] = []
    found = READERS["deutschbauer2005"](small.path, genes, collect=readings.append)
    deletion, reduced = int(PerturbationKind.DELETION), int(PerturbationKind.REDUCED_EXPRESSION)
    assert rows(found) == {
        ("YAL001C", reduced, "YPD", 0.9),
        ("YAL002W", reduced, "YPD", 1.01),
        ("YAL002W", deletion, "YPD", 0.7),
        ("YAL002W", deletion, "minimal complete", 0.6),
    }
    assert len({found.genotype(i).id for i in range(len(found))}) == 3
    (reading,) = readings
    assert (reading.rows, reading.kept) == (12, 4)
    assert reading.dropped == {"unknown gene": 3, "ambiguous gene name": 3, "no value": 2}


def test_the_order_of_rows_does_not_matter_of_growth(small, genes: GeneIndex) -> None:
    small.write(DEUTSCHBAUER.file, TWO_PLOIDIES)
    first = rows(READERS["deutschbauer2005"](small.path, genes))
    head, *lines = TWO_PLOIDIES.splitlines()
    small.write(DEUTSCHBAUER.file, "\n".join([head, *reversed(lines)]) + "\n")
    assert rows(READERS["deutschbauer2005"](small.path, genes)) == first


def test_cell_shapes_of_one_screen_are_traits_and_no_growth(small, genes: GeneIndex) -> None:
    head = f"orf\thom | growth (pool) | standard | YPD | {WHO}\t"
    head += f"hom | round cell shape | standard | YPAD | {WHO}\n"
    small.write(GIAEVER.file, head + "YAL002W\t-3\t2\n")
    found = {r.phenotype.name: r for r in READERS["giaever2002"](small.path, genes).records()}
    assert found["growth score"].trait == ""
    assert found["cell shape score"].trait == "round cell shape"
    assert found["cell shape score"].environment.medium == "YPAD"
    small.write(BRESLOW.file, head.replace("growth", "size") + "YAL002W\t-3\t2\n")
    with pytest.raises(SourceError, match="expected growth"):
        READERS["breslow2008"](small.path, genes)


def test_a_damaged_number_or_file_is_refused(small, genes: GeneIndex) -> None:
    small.write(DEUTSCHBAUER.file, TWO_PLOIDIES.replace("0.7", "0,7"))
    with pytest.raises(SourceError, match="line 3: received '0,7', expected a number"):
        READERS["deutschbauer2005"](small.path, genes)
    path = small.path / DEUTSCHBAUER.file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match="is cut short"):
        READERS["deutschbauer2005"](small.path, genes)


def test_every_screen_says_what_its_numbers_mean() -> None:
    assert set(READERS) == {study.name for study in (*SCREENS, *TRAITS)}
    for screen in SCREENS:
        assert screen.phenotype.description
        assert screen.phenotype.direction == "higher is fitter"
        assert all(url.startswith("https://") for remote in screen.publisher.files for url in remote.urls)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "strains", "columns", "kept", "environments"),
    [
        ("breslow2008", 4157, 1, 4157, 1),
        ("deutschbauer2005", 5866, 4, 20_651, 2),
        ("qian2012", 4403, 6, 26_418, 6),
        ("steinmetz2002", 5823, 16, 83_080, 8),
        ("giaever2002", 4732, 22, 103_276, 18),
        ("costanzo2021", 3222, 14, 44_949, 14),
        ("galardini2019", 4316, 38, 160_158, 38),
    ],
)
def test_real_counts_of_growth(
    mirror: Path, real_genes: GeneIndex, name: str, strains: int, columns: int, kept: int, environments: int
) -> None:
    readings: list[ReadReport] = []
    found = READERS[name](mirror, real_genes, collect=readings.append)
    assert (readings[0].rows, readings[0].kept, len(found)) == (strains * columns, kept, kept)
    assert set(readings[0].dropped) <= {"no value"}
    assert len(found.environments) == environments


def growth_by_gene(found: Measurements, medium: str, compound: str = "", n: int = 6604) -> np.ndarray:
    fits = [
        e.medium == medium and [c.name for c in e.compounds] == ([compound] if compound else [])
        for e in found.environments
    ]
    growth = np.array([p.level == "cell" for p in found.phenotypes])[found.phenotype]
    chosen = np.array(fits)[found.environment] & (found.kind == PerturbationKind.DELETION) & growth
    out = np.full(n, np.nan)
    out[found.gene[chosen]] = found.value[chosen]
    return out


@pytest.mark.real
def test_real_values_agree_between_screens(mirror: Path, real_genes: GeneIndex) -> None:
    table = read_rows(mirror / "phenotype_smf_baryshnikova2010.tsv.gz", header=("orf", ...))
    colony = np.full(len(real_genes), np.nan)
    colony[match_genes(table.text(0), real_genes).position] = table.numbers(1)
    breslow = growth_by_gene(READERS["breslow2008"](mirror, real_genes), "standard")
    qian = growth_by_gene(READERS["qian2012"](mirror, real_genes), "YPD")
    for other in (breslow, qian):
        both = np.isfinite(colony) & np.isfinite(other)
        assert np.corrcoef(colony[both], other[both])[0, 1] == pytest.approx(0.61, abs=0.01)


@pytest.mark.real
def test_real_directions_are_those_of_known_mutants(mirror: Path, real_genes: GeneIndex) -> None:
    giaever = READERS["giaever2002"](mirror, real_genes)
    steinmetz = READERS["steinmetz2002"](mirror, real_genes)
    conditions = READERS["costanzo2021"](mirror, real_genes)
    known = [
        (giaever, "YPD, time 15 gen", "sodium chloride", "HOG1"),
        (giaever, "SC -Lys, time [5 gen] | YPD", "", "LYS1"),
        (giaever, "YPGal, time [15 gen] | YPD", "", "GAL4"),
        (steinmetz, "YPG [3%]", "", "ATP11"),
        (conditions, "SGA final selection medium", "galactose", "GAL4"),
        (conditions, "SGA final selection medium", "benomyl", "TUB3"),
    ]
    for found, medium, compound, gene in known:
        values = growth_by_gene(found, medium, compound)
        assert values[real_genes.find(gene)] < np.nanpercentile(values, 3), (medium, compound, gene)
