"""CalMorph: no real file is at hand; the tables are written here in exactly the published layout of SCMD."""

from __future__ import annotations

import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.traits.calmorph import MUTANTS, WILD_TYPES, read

TRAITS = [f"{prefix}C11-{i}_A" for prefix in ("", "ACV", "CCV", "DCV", "TCV") for i in range(1, 102)][:501]


def table(key: str, names: list[str], step: float) -> str:
    lines = ["\t".join([key, *TRAITS])]
    lines += ["\t".join([name, *(f"{i + step * j:g}" for j in range(501))]) for i, name in enumerate(names)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def calmorph(small):
    """Six mutants, two of which are one gene today and one is retired, and three wild types."""
    names = ["yal001c", "yal002w", "yar042w", "yar044w", "ycl074w", "double"]
    small.write(f"{MUTANTS.name}.gz", table("ORF", names, 0.5))
    small.write(f"{WILD_TYPES.name}.gz", table("NAME", ["his3_1", "his3_2", "his3_3"], 0.25))
    return small


def test_lower_case_genes_and_hyphenated_traits_are_read(calmorph, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(calmorph.path, genes, collect=readings.append)
    assert len(found) == (4 + 3) * 501
    assert set(found.traits) == set(TRAITS)
    record = next(r for r in found.records() if r.trait == "C11-3_A" and r.genotype.perturbations)
    assert (record.genotype.perturbations[0].gene, record.value) == ("YAL001C", 1.0)
    mutants, wild_types = readings
    assert (mutants.rows, mutants.kept, mutants.renamed) == (6 * 501, 4 * 501, 501)
    assert mutants.dropped == {"unknown gene": 501, "ambiguous gene name": 501}
    assert (wild_types.rows, wild_types.kept) == (3 * 501, 3 * 501)


def test_wild_types_and_merged_genes_are_replicates(calmorph, genes: GeneIndex) -> None:
    found = read(calmorph.path, genes)
    one = found.take(found.trait == found.traits.index("TCVC11-97_A"))
    assert {(r.genotype.id, r.replicate, r.value) for r in one.records() if not r.genotype.perturbations} == {
        (one.genotype(len(one) - 1).id, f"his3_{i + 1}", i + 0.25 * 500) for i in range(3)
    }
    assert {r.replicate for r in one.records() if r.genotype.perturbations} == {"", "YAR042W", "YAR044W"}


def test_missing_values_are_counted(calmorph, genes: GeneIndex) -> None:
    text = calmorph.text(f"{MUTANTS.name}.gz").replace("\t0.5\t", "\tNA\t", 1)
    calmorph.write(f"{MUTANTS.name}.gz", text)
    readings: list[ReadReport] = []
    read(calmorph.path, genes, collect=readings.append)
    assert readings[0].dropped["no value"] == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (MUTANTS, "ORF\t", "GENE\t", "line 1: received the first column 'GENE'"),
        (MUTANTS, "C11-2_A\t", "C11-1_A\t", "line 1: received the column name 'C11-1_A' again"),
        (MUTANTS, "C11-2_A\t", "\t", "line 1: received the column name '' again or empty"),
        (MUTANTS, "yal002w\t1\t", "yal002w\t", "line 3: received 501 fields, expected 502"),
        (MUTANTS, "yal002w\t1\t", "yal002w\tone\t", "line 3: received 'one', expected a number in 'C11-1_A'"),
        (WILD_TYPES, "\tC11-1_A\t", "\tC11-1_B\t", "received other traits than mt4718data.tsv"),
    ],
)
def test_another_layout_is_refused(
    calmorph, genes: GeneIndex, file, old: str, new: str, message: str
) -> None:
    text = calmorph.text(f"{file.name}.gz")
    assert old in text
    calmorph.write(f"{file.name}.gz", text.replace(old, new, 1))
    with pytest.raises(SourceError, match=message):
        read(calmorph.path, genes)


@pytest.mark.parametrize("file", [MUTANTS, WILD_TYPES], ids=lambda file: file.name)
def test_a_missing_or_truncated_file_is_named(calmorph, genes: GeneIndex, file) -> None:
    path = calmorph.path / f"{file.name}.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=rf"{file.name}\.gz is cut short"):
        read(calmorph.path, genes)
    path.unlink()
    with pytest.raises(SourceError, match=rf"{file.name} is not in"):
        read(calmorph.path, genes)
