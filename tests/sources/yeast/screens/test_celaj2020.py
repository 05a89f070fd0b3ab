"""XGA: the real files, and small ones written in exactly their layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.celaj2020 import (
    GENOTYPES,
    GROWTH_A,
    GROWTH_ALPHA,
    PUBLISHER,
    RESISTANCE,
    read,
)

TRANSPORTERS = {
    "YNR070W": "PDR18", "YGR281W": "YOR1", "YCR011C": "ADP1", "YDR135C": "YCF1", "YHL035C": "VMR1",
    "YDR011W": "SNQ2", "YLL015W": "BPT1", "YOR011W": "AUS1", "YPL058C": "PDR12", "YKR103W": "NFT1",
    "YOR153W": "PDR5", "YIL013C": "PDR11", "YLL048C": "YBT1", "YOR328W": "PDR10", "YOL075C": "",
    "YDR406W": "PDR15",
}  # fmt: skip
NAMES = [standard or orf for orf, standard in TRANSPORTERS.items()]
HEAD = ["PLATE", "c", "r", "Strain Name", "POS", "Comment", "UPTAG", "UPTAG stat", "DNTAG", "DNTAG stat"]
STRAINS = [  # plate, strain, transporters deleted ("-": no genotype)
    ("yeast_a01", "A1", ["PDR5"]),
    ("yeast_a01", "A2", ["PDR5"]),
    ("yeast_a02", "A3", []),
    ("yeast_alpha01", "B1", ["PDR5", "YOL075C", "YOR1"]),
    ("yeast_alpha02", "B2", NAMES),
    ("yeast_alpha02", "B3", "-"),
]


def genotypes() -> str:
    lines = [[*HEAD, *NAMES]]
    for plate, strain, deleted in STRAINS:
        cells = ["" if deleted == "-" else "1" if name in deleted else "0" for name in NAMES]
        lines.append([plate, "1", "1", strain, "A01", "Pick", "", "", "", "", *cells])
    return "\n".join("\t".join(line) for line in lines) + "\n"


def table(suffix: str, drugs: list[str], strains: list[str]) -> str:
    """Return a table as R writes it: the header lacks a name for the column of strains."""
    lines = ["\t".join(f"{drug}_{suffix}" for drug in drugs)]
    lines += [
        "\t".join([strain, *(f"{i + j / 10:g}" for j in range(len(drugs)))])
        for i, strain in enumerate(strains)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def transporters() -> GeneIndex:
    return GeneIndex(
        list(TRANSPORTERS), {orf: name for orf, name in TRANSPORTERS.items() if name}, {}, "yeast"
    )


@pytest.fixture
def xga(small):
    """Six strains: two of one genotype, a wild type, one without any transporter, one without a genotype."""
    small.write(f"{GENOTYPES.name}.gz", genotypes())
    small.write(
        f"{RESISTANCE.name}.gz", table("both", ["tamoxifen", "benomyl"], ["A1", "A2", "A3", "B1", "B2", "B3"])
    )
    small.write(f"{GROWTH_A.name}.gz", table("A", ["CTRL", "tamoxifen"], ["A1", "A2", "A3"]))
    small.write(f"{GROWTH_ALPHA.name}.gz", table("alpha", ["CTRL", "tamoxifen"], ["B1", "XX"]))
    return small


def test_genotypes_of_every_order_in_every_drug(xga, transporters: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(xga.path, transporters, collect=readings.append)
    rows = {
        (r.phenotype.name, r.replicate, str(r.environment)): (
            {p.gene for p in r.genotype.perturbations},
            r.value,
        )
        for r in found.records()
    }
    assert rows["drug resistance", "MATa A3", "not stated, benomyl"] == (set(), 2.1)
    assert rows["drug resistance", "MATalpha B1", "not stated, tamoxifen"] == (
        {"YOR153W", "YOL075C", "YGR281W"},
        3.0,
    )
    assert rows["drug resistance", "MATalpha B2", "not stated, tamoxifen"][0] == set(TRANSPORTERS)
    assert rows["growth", "MATa A2", "not stated"] == ({"YOR153W"}, 1.0)
    assert rows["growth", "MATalpha B1", "not stated, tamoxifen"][1] == 0.1
    assert len(rows) == len(found) == 10 + 6 + 2
    counts = {reading.file.split("xga_")[1].split(".")[0]: reading for reading in readings}
    assert (counts["genotypes"].rows, counts["genotypes"].kept) == (6, 5)
    assert counts["genotypes"].dropped == {"no genotype": 1}
    assert counts["resistance_both"].dropped == {"strain without a genotype": 2}
    assert counts["growth_alpha"].dropped == {"strain without a genotype": 2}
    assert all(r.rows == r.kept + sum(r.dropped.values()) for r in readings)


def test_strains_of_one_genotype_are_true_replicates(xga, transporters: GeneIndex) -> None:
    found = read(xga.path, transporters)
    same = [r for r in found.records() if r.phenotype.name == "drug resistance" and r.value in (0.1, 1.1)]
    assert len({r.genotype.id for r in same}) == 1
    assert {r.replicate for r in same} == {"MATa A1", "MATa A2"}


def test_a_mutant_never_loses_a_gene_that_the_list_does_not_have(xga) -> None:
    known = [orf for orf in TRANSPORTERS if orf != "YGR281W"]
    xga.write(f"{GROWTH_ALPHA.name}.gz", table("alpha", ["CTRL", "tamoxifen"], ["B1", "A1"]))
    genes = GeneIndex(known, {orf: TRANSPORTERS[orf] for orf in known}, {}, "yeast")
    readings: list[ReadReport] = []
    found = read(xga.path, genes, collect=readings.append)
    assert not any(r.replicate.endswith(("B1", "B2")) for r in found.records() if r.value < 10)
    assert readings[1].dropped == {"strain without a genotype": 2, "deletes an unknown gene": 4}


def test_missing_values_are_counted(xga, transporters: GeneIndex) -> None:
    xga.replace(f"{RESISTANCE.name}.gz", "\t2.1\n", "\tNA\n")
    readings: list[ReadReport] = []
    read(xga.path, transporters, collect=readings.append)
    assert readings[1].dropped["no value"] == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (GENOTYPES, "Strain Name", "Strain", "line 1: received the header"),
        (
            GENOTYPES,
            "A2\tA01\tPick\t\t\t\t\t0",
            "A2\tA01\tPick\t\t\t\t\t2",
            "line 3: received '2', expected 0",
        ),
        (GENOTYPES, "1\tA2\t", "1\tA1\t", "line 3: received 'A1', expected every strain once"),
        (GENOTYPES, "yeast_a02", "yeast_b02", "line 4: received 'yeast_b02', expected a plate"),
        (RESISTANCE, "benomyl_both", "benomyl_A", "line 1: received the column 'benomyl_A'"),
        (RESISTANCE, "\t2.1\n", "\thigh\n", "line 4: received 'high', expected a number in 'benomyl_both'"),
        (RESISTANCE, "\t2.1\n", "\n", "line 4: received 2, expected 3 fields, a strain and 2 numbers"),
        (RESISTANCE, "A3\t", "A1\t", "line 4: received 'A1', expected every strain once"),
    ],
)
def test_another_layout_is_refused(
    xga, transporters: GeneIndex, file, old: str, new: str, message: str
) -> None:
    xga.replace(f"{file.name}.gz", old, new)
    with pytest.raises(SourceError, match=message):
        read(xga.path, transporters)


@pytest.mark.parametrize("file", PUBLISHER.files, ids=lambda file: file.name)
def test_a_missing_or_truncated_file_is_named(xga, transporters: GeneIndex, file) -> None:
    path = xga.path / f"{file.name}.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=rf"{file.name}\.gz is cut short"):
        read(xga.path, transporters)
    path.unlink()
    with pytest.raises(SourceError, match=rf"{file.name} is not in"):
        read(xga.path, transporters)


@pytest.mark.real
def test_real_files(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept) for r in readings] == [
        (11_520, 7195),
        (4498 * 16, 4498 * 16),
        (2013 * 17, 2013 * 17),
        (2485 * 17, 2485 * 17),
    ]
    resistance = found.take(found.phenotype == 0)
    per_strain = resistance.take(resistance.environment == 0)
    keys, counts = np.unique(per_strain.genotype_key, axis=0, return_counts=True)
    assert (len(per_strain), len(keys), (counts > 1).sum()) == (4498, 4135, 339)
    assert (per_strain.order.min(), np.bincount(per_strain.order).argmax(), per_strain.order.max()) == (
        1,
        7,
        16,
    )
    drugs = {
        environment.compounds[0].name: code for code, environment in enumerate(resistance.environments[:16])
    }
    for gene, drug, cost in [
        ("PDR5", "tamoxifen", 0.94),
        ("PDR5", "miconazole", 0.74),
        ("PDR5", "ketoconazole", 0.60),
        ("SNQ2", "bisantrene", 0.74),
        ("SNQ2", "benomyl", 0.29),
        ("YOR1", "beauvericin", 0.88),
    ]:
        rows = resistance.take(resistance.environment == drugs[drug])
        lacks = np.zeros(len(rows), bool)
        lacks[rows.row[rows.gene == real_genes.find(gene)]] = True
        assert rows.value[~lacks].mean() - rows.value[lacks].mean() == pytest.approx(cost, abs=0.015)
