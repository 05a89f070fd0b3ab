"""Genes of a GFF3 file, as NCBI, Ensembl and others write it.

Source: https://github.com/The-Sequence-Ontology/Specifications/blob/master/gff3.md (version 1.26).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from wildtype.characters import first_fault
from wildtype.errors import SourceError, shown
from wildtype.sources.text import read_bytes
from wildtype.sources.user_organisms.description import GeneFile
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_tables.grid import decoded

FIELDS = 9
NAMES = ("locus_tag", "gene_id", "ID", "Name")
"""Attributes that name a gene, the likeliest first; in ID=gene-b0001 and ID=gene:b0001 the prefix is none."""
STANDARD = ("gene", "Name", "gene_name")
ALIASES = ("gene_synonym", "Alias", "old_locus_tag")
DESCRIPTION = ("product", "description", "Note")


@dataclass(frozen=True)
class GffGene:
    """One gene; positions in bases from 1."""

    name: str
    standard: str
    aliases: tuple[str, ...]
    description: str
    chromosome: str
    start: float
    end: float
    strand: int


def read_gff(
    file: GeneFile, path: Path, problems: Problems
) -> tuple[list[GffGene], int, dict[str, int], str]:
    """Return the genes, the number of features, the others by reason, and a remark."""
    genes: dict[str, GffGene] = {}
    by_id: dict[str, str] = {}
    products: dict[str, str] = {}
    others: Counter[str] = Counter()
    empty = True
    keys = [file.columns.name] if file.columns.name else list(NAMES)
    key = ""
    for row, line in enumerate(decoded(Path(file.path), read_bytes(path)).splitlines(), 1):
        if line.startswith("##FASTA") or line.startswith(">"):
            break  # sequences follow, to the end
        if not line.strip() or line.startswith("#"):
            continue
        empty = False
        cells = line.split("\t")
        if len(cells) != FIELDS:
            problems.add(
                file.path, row, f"received {len(cells)} fields, expected {FIELDS}, separated by tabs"
            )
            continue
        if cells[2] != file.type:
            others[f"feature of type {cells[2]}"] += 1
            if "product=" in cells[8]:
                given = _attributes(cells[8])
                owner = given.get("locus_tag") or given.get("Parent", "")
                products.setdefault(owner, given["product"].split(",")[0])
            continue
        given = _attributes(cells[8])
        key = key or next((str(one) for one in keys if str(one) in given), "")
        name = given.get(key, "") if key else ""
        if key == "ID":
            name = name.removeprefix("gene-").removeprefix("gene:")
        if not name:
            problems.add(
                file.path, row, f"the gene has no attribute {key or ' or '.join(map(str, keys))} (it has "
                f"{', '.join(given) or 'none'}): name the one with columns: {{name: ...}}"
            )  # fmt: skip
            continue
        if not (cells[3].isdigit() and cells[4].isdigit()) or int(cells[3]) > int(cells[4]):
            problems.add(
                file.path,
                row,
                f"received {shown('..'.join(cells[3:5]))}, expected a start and an end in bases",
            )
            continue
        if name in genes:
            others["further feature of a gene"] += 1
            continue
        gene = _gene(file, name, given, cells)
        named = (gene.name, gene.standard, *gene.aliases, gene.chromosome)
        if fault := first_fault(named):
            problems.add(file.path, row, fault)
            continue
        by_id[given.get("ID", name)] = name
        genes[name] = gene
    if empty:
        raise SourceError(f"{file.path} has no features: give a GFF3 file")
    for owner, product in products.items():
        name = owner if owner in genes else by_id.get(owner, "")
        if name and not genes[name].description:
            genes[name] = replace(genes[name], description=unquote(product))
    return (
        list(genes.values()),
        len(genes) + others.total(),
        dict(others),
        f"genes are named by the attribute {key}" if genes else "",
    )


def _gene(file: GeneFile, name: str, given: dict[str, str], cells: list[str]) -> GffGene:
    columns = file.columns

    def first(named: str | int, usual: tuple[str, ...]) -> str:
        wanted = (str(named),) if named != "" else usual
        return next((unquote(given[one]) for one in wanted if given.get(one)), "")

    standard = first(columns.standard, STANDARD)
    other = (str(columns.aliases),) if columns.aliases != "" else ALIASES
    aliases = [unquote(alias) for one in other for alias in given.get(one, "").split(",") if alias]
    if "Name" in given and unquote(given["Name"]) not in (name, standard):
        aliases.append(unquote(given["Name"]))
    return GffGene(
        unquote(name),
        "" if standard == name else standard,
        tuple(dict.fromkeys(alias for alias in aliases if alias != name)),
        first(columns.description, DESCRIPTION),
        cells[0],
        float(cells[3]),
        float(cells[4]),
        {"+": 1, "-": -1}.get(cells[6], 0),
    )


def _attributes(cell: str) -> dict[str, str]:
    """Return the attributes of a feature; values stay as they are escaped, since commas separate several."""
    pairs = (part.partition("=") for part in cell.strip().rstrip(";").split(";"))
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}
