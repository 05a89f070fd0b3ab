"""A small organism as files: what a laboratory would have in one folder."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from wildtype.sources.user_organisms.build import Built, build_organism
from wildtype.sources.user_organisms.description import from_plain
from wildtype.sources.user_organisms.problems import OrganismProblems

GENES = """\
locus_tag\tsymbol\tsynonyms\tproduct\tessential\tchr\tstart\tend\tstrand
M0001\tdnaA\told1|old2\tinitiator of replication\tyes\tchr2\t100\t1450\t+
M0002\tdnaN\t\tclamp\tyes\tchr2\t2500\t1500\t-
M0003\t\t\t\tno\tchr10\t10\t400\t+
M0004\tgyrB\tnov\tgyrase\tyes\t\t\t\t
"""
EDGES = "gene_a,gene_b,score\ndnaA,dnaN,0.5\ndnaN,M0001,0.25\nM0003,M0003,1\nold2,gyrB,0.75\nM0001,M9999,1\n"
NUMBERS = "gene,a,b\nM0001,1,2\nnov,3,\nM7777,5,6\n"


def folder_of(path: Path, **files: str) -> Path:
    """Write files into a folder; a name such as ``ppi_csv_gz`` becomes ``ppi.csv.gz``."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = path / name.replace("_", ".")
        data = text.encode("utf-8")
        file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return path


def small(path: Path) -> dict[str, Any]:
    """Write the organism into a folder, and return its description in plain values."""
    folder_of(path, genes_tsv=GENES, ppi_csv=EDGES, esm_csv=NUMBERS)
    return {
        "name": "mini",
        "description": "four genes",
        "genes": {"files": [{"path": "genes.tsv"}]},
        "relations": [{"name": "physical", "path": "ppi.csv", "weight": "score"}],
        "features": [{"name": "esm", "path": "esm.csv"}],
    }


def build(plain: dict[str, Any], folder: Path) -> Built:
    """Build the organism of plain values."""
    return build_organism(from_plain(plain, "organism.yaml"), folder)


def problems_of(plain: dict[str, Any], folder: Path) -> list[str]:
    """Return the problems of a description that is refused, one line each."""
    try:
        build(plain, folder)
    except OrganismProblems as error:
        return error.problems.lines()
    raise AssertionError("nothing was refused")


def files_of(built: Built) -> dict[str, dict[str, Any]]:
    """Return the cards of files by what the files are for, and check that they add up."""
    for card in built.card["files"]:
        assert card["rows"] == card["used"] + sum(card["dropped"].values())
    return {card["use"]: card for card in built.card["files"]}
