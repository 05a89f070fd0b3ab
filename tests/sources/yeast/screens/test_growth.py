"""Growth screens."""

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
from wildtype.sources.yeast.screens.growth import GROWTH, PUBLISHERS, READERS, SCREENS
from wildtype.sources.yeast.traits.tables import BRESLOW, DEUTSCHBAUER, GIAEVER

WHO = "Someone A~Other B, 2002"
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


def test_the_order_of_rows_does_not_matter(small, genes: GeneIndex) -> None:
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
    assert set(GROWTH) == set(READERS) == {screen.name for screen in SCREENS}
    for publisher, phenotype in zip(PUBLISHERS, GROWTH.values(), strict=True):
        assert phenotype.description
        assert phenotype.direction == "higher is fitter"
        assert all(url.startswith("https://") for remote in publisher.files for url in remote.urls)


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
    ],
)
def test_real_counts(
    mirror: Path, real_genes: GeneIndex, name: str, strains: int, columns: int, kept: int, environments: int
) -> None:
    readings: list[ReadReport] = []
    found = READERS[name](mirror, real_genes, collect=readings.append)
    assert (readings[0].rows, readings[0].kept, len(found)) == (strains * columns, kept, kept)
    assert set(readings[0].dropped) <= {"no value"}
    assert len(found.environments) == environments


def by_gene(found: Measurements, medium: str, compound: str = "", n: int = 6604) -> np.ndarray:
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
    breslow = by_gene(READERS["breslow2008"](mirror, real_genes), "standard")
    qian = by_gene(READERS["qian2012"](mirror, real_genes), "YPD")
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
        values = by_gene(found, medium, compound)
        assert values[real_genes.find(gene)] < np.nanpercentile(values, 3), (medium, compound, gene)
