"""Made-up tables of 200 rows with the layout of the files that docs/other-organisms.md names."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROWS = 200


def write_laboratories(folder: Path) -> None:
    """Write the folders human, fly and pneumococcus."""
    rng = np.random.default_rng(0)
    _human(folder / "human", rng)
    _fly(folder / "fly", rng)
    _pneumococcus(folder / "pneumococcus", rng)


def _write(path: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in ([header, *rows] if header else rows)]
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.write("\n".join(lines) + "\n")


def _pairs(names: Sequence[str], rng: np.random.Generator, count: int = ROWS) -> list[tuple[str, str]]:
    """Return different pairs of names, each in ascending order."""
    left, right = np.triu_indices(len(names), 1)
    return [(names[left[i]], names[right[i]]) for i in rng.permutation(len(left))[:count]]


def _numbers(rng: np.random.Generator, *shape: int) -> list[list[str]]:
    return [[f"{value:.5f}" for value in row] for row in rng.normal(0, 1, shape)]


def _human(folder: Path, rng: np.random.Generator) -> None:
    names = [f"HUM{i}A" for i in range(24)]
    scored = [
        (*pair, value) for pair, (value,) in zip(_pairs(names, rng), _numbers(rng, ROWS, 1), strict=True)
    ]
    scored += [(names[i], "negative", "0.01") for i in range(5)]
    _write(folder / "horlbeck2018_pairs.tsv.gz", scored, ("gene_a", "gene_b", "gi_score"))
    columns = ("single_a", "single_b", "double_rep1", "double_rep2", "gi_rep1", "gi_rep2", "gi_published")
    rows = [(*pair, *x) for pair, x in zip(_pairs(names, rng), _numbers(rng, ROWS, 7), strict=True)]
    _write(folder / "norman2019_pairs.tsv.gz", rows, ("gene_a", "gene_b", *columns))
    for name in ("human_ppi_huri_union", "human_ppi_litbm17"):
        _write(folder / f"{name}.tsv.gz", _pairs(names, rng, 60), ("gene_a", "gene_b"))
    sets = [[str(one) for one in rng.choice(names, size, replace=False)] for size in (2, 3, 4, 5, 6, 4)]
    complexes = [(i, f"complex {i}", ";".join(members)) for i, members in enumerate(sets)]
    _write(folder / "human_corum_complexes.tsv.gz", complexes, ("complex_id", "complex_name", "genes"))
    # The file of GO terms glues the first gene to the name with a comma, and has no descriptions.
    terms = [(f"process {i} (GO:000000{i}),{members[0]}", *members[1:]) for i, members in enumerate(sets)]
    _write(folder / "human_go_bp_2018.gmt.gz", terms)
    pathways = [(f"pathway {i}", f"R-HSA-{i}", *members) for i, members in enumerate(sets)]
    _write(folder / "human_reactome_pathways.gmt.gz", pathways)
    places = [(name, *x) for name, x in zip([*names, "18S_rRNA"], _numbers(rng, 25, 2), strict=True)]
    _write(folder / "human_compartments_7terms.tsv.gz", places, ("gene", "Nucleus", "Nucleolus"))


def _fly(folder: Path, rng: np.random.Generator) -> None:
    names = [f"FBgn{i:07d}" for i in range(24)]
    measured = [
        f"{what}_{phenotype}_rep{rep}"
        for phenotype in ("nrCells", "area", "intensity")
        for rep in (1, 2)
        for what in ("pi", "sd")
    ]
    rows = []
    for (a, b), x in zip(_pairs(names, rng), _numbers(rng, ROWS, 12), strict=True):
        values = [value if i % 2 == 0 else value.lstrip("-") for i, value in enumerate(x)]
        rows.append((a, b, a.lower(), b.lower(), *values, 8))
    header = ("fbgn_a", "fbgn_b", "symbol_a", "symbol_b", *measured, "n_wells_per_rep")
    _write(folder / "horn2011_pairs.tsv.gz", rows, header)
    _write(folder / "fly_ppi_biogrid_kisr.tsv.gz", _pairs(names, rng, 60), ("fbgn_a", "fbgn_b"))
    groups = [(f"FBgg{i % 5}", f"G{i % 5}", "A GROUP", "", "", name, "x") for i, name in enumerate(names)]
    header = (
        "FB_group_id", "FB_group_symbol", "FB_group_name", "Parent_FB_group_id", "Parent_FB_group_symbol",
        "Group_member_FB_gene_id", "Group_member_FB_gene_symbol",
    )  # fmt: skip
    _write(folder / "fly_flybase_gene_groups_fb2019_02.tsv.gz", groups, header)


def _pneumococcus(folder: Path, rng: np.random.Generator) -> None:
    operons = [f"SPV_{2 * i:04d},SPV_{2 * i + 1:04d}" if i % 3 else f"SPV_{2 * i:04d}" for i in range(40)]
    guides = [(f"sgRNA{i:04d}", operon, f"g{i}") for i, operon in enumerate(operons)]
    guides.append(("sgRNA9999", "NA", "NA"))
    header = ("sgRNA_name", "target_operon_locus_tags", "target_operon_names")
    name = "denereaz_dualcrispri_targets_operon_manual-curation_20220401.txt.gz"
    _write(folder / name, guides, header)
    rows: list[tuple[object, ...]] = []
    crossed = [(query, array) for query in operons[:6] for array in operons[5:]]
    for (query, array), x in zip(crossed[:ROWS], _numbers(rng, ROWS, 8), strict=True):
        rows.append(("sgRNA1", "sgRNA2", query, array, "q", "a", 400, *x))
    # A guide without an operon, and a row at the floor of the counts.
    rows.append(("sgRNA1", "sgRNA9", operons[0], "", "q", "", 400, *_numbers(rng, 1, 8)[0]))
    rows[0] = (*rows[0][:7], "-11", "-11", "-12", "-11", *rows[0][11:])
    columns = [f"{what}_rep{rep}" for what in ("lfc", "gi") for rep in (1, 2, 3, 4)]
    header = ("query_sgRNA", "array_sgRNA", "query_operon", "array_operon", "query_genes", "array_genes")
    _write(folder / "denereaz_pneumo_pairs.tsv.gz", rows, (*header, "count_uninduced", *columns))
