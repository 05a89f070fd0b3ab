"""BioGRID of any organism: physical interactions are a relation, genetic ones are offered as measurements.

A relation of genetic interactions would leak the labels of data sets of such interactions.

Legend: m rows of the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.biogrid import FOREIGN, GENETIC, PHYSICAL, Interactions, read_interactions
from wildtype.sources.row_filter import Flags, RowFilter
from wildtype.sources.text import GeneNames, match_genes
from wildtype.sources.user_organisms.description import Biogrid
from wildtype.sources.user_organisms.gene_sets import lost_names
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import FileCard, Read, locate, no_gene_known

if TYPE_CHECKING:
    import pandas as pd

RNA = "protein and RNA"
RNA_SYSTEMS = ("Affinity Capture-RNA", "Protein-RNA")
"""Physical interactions that are not of two proteins."""
OFFERED = "genetic interaction, offered as a measurement"
MOSTLY = 0.9
"""Share of the rows that must be within one taxon for it to be taken without being named."""
FURTHER = ("entrez", "synonyms", "system", "author", "publication", "score")
_VERSION = re.compile(r"-(\d+(?:\.\d+)+)\.")


def read(part: Biogrid, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the undirected relation of physical interactions, and genetic ones as tables."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return _read(part, path, names)
    return Read()


def names_in(part: Biogrid, folder: Path, problems: Problems) -> list[str]:
    """Return the names of the genes of the taxon: systematic, official symbols where there is none."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            rows = read_interactions(path)
            foreign = rows.foreign(_taxon(part, rows)[0])
            found: set[str] = set()
            for systematic, symbol in zip(rows.ends("systematic"), rows.ends("symbol"), strict=True):
                pairs = {(systematic[i], symbol[i]) for i in np.flatnonzero(~foreign).tolist()}
                found |= {name if name not in ("-", "") else other for name, other in pairs}
            return sorted(found)
    return []


def _read(part: Biogrid, path: Path, genes: GeneIndex) -> Read:
    rows = read_interactions(path, FURTHER)
    taxon, note = _taxon(part, rows)
    spelled, ends = zip(*(_genes(rows, side, genes) for side in (0, 1)), strict=True)
    foreign = rows.foreign(taxon)
    if not any(names.found[~foreign].any() for names in ends):
        first = [spelled[0][i] for i in np.flatnonzero(~foreign)[:100]]
        raise no_gene_known(part.path, list(dict.fromkeys(first)), genes.organism)
    genetic = rows.kind == GENETIC
    rna = rows.text("system").map(lambda system: system in RNA_SYSTEMS, bool) & (rows.kind == PHYSICAL)
    used = RowFilter(len(rows))
    used.drop_all({FOREIGN: foreign, OFFERED: genetic, RNA: rna})
    used.drop_names(*ends)
    version = _VERSION.search(path.name)
    relation = Relation.from_edges(
        part.name,
        ends[0].position[used.left],
        ends[1].position[used.left],
        len(genes),
        directed=False,
        source=part.source or "BioGRID",
        version=part.version or (version[1] if version else ""),
        note="; ".join(filter(None, (part.note, "a pair that several publications report is one edge"))),
        dropped=used.dropped,
    )
    tables, remark = _measurements(part.name, rows, ends, genetic & ~foreign, genes)
    note = "; ".join(filter(None, (note, remark)))
    both = GeneNames(
        np.concatenate([end.position for end in ends]), np.concatenate([end.renamed for end in ends])
    )
    card = FileCard(
        part.path,
        f"relation {part.name}",
        len(rows),
        relation.edges,
        dict(relation.dropped),
        note,
        lost_names([name for side in spelled for name in side], both),
    )
    return Read((card,), (relation,), measurements=tables)


def _taxon(part: Biogrid, rows: Interactions) -> tuple[str, str]:
    """Return the taxon whose rows are read, and a note on how it was found.

    Raises
    ------
    SourceError
        If it is not in the file, or is not given where the file has several.
    """
    taxa = rows.taxa()
    held = ", ".join(f"{taxon} ({count:,} rows)" for taxon, count in taxa.most_common(5)) or "none"
    if part.taxon is not None:
        if str(part.taxon) not in taxa:
            raise SourceError(f"no row is within taxon {part.taxon}: the file has rows within {held}")
        return str(part.taxon), ""
    if not taxa or taxa.most_common(1)[0][1] < MOSTLY * len(rows):
        raise SourceError(f"the file has rows within several taxa ({held}): name one as taxon")
    return taxa.most_common(1)[0][0], f"taxon {taxa.most_common(1)[0][0]}, of most rows"


def _genes(rows: Interactions, side: int, genes: GeneIndex) -> tuple[list[str], GeneNames]:
    """Return the names [m] and genes [m] of one interactor.

    The systematic name decides, then the official symbol, the Entrez number, and the one gene that all
    synonyms mean.
    """
    columns = [rows.ends(what)[side] for what in ("systematic", "symbol", "entrez", "synonyms")]
    # Distinct interactors are few: each is looked up once.
    key, first, code = np.unique(
        np.stack([column.code for column in columns]), axis=1, return_index=True, return_inverse=True
    )
    texts = [[column.names[i] for i in key[k]] for k, column in enumerate(columns)]
    position, renamed = np.full(len(first), -1), np.zeros(len(first), bool)
    for names in texts[:3]:
        found = match_genes(names, genes)
        better = (position == -1) & (found.position != -1)
        position, renamed = (
            np.where(better, found.position, position),
            np.where(better, found.renamed, renamed),
        )
    for i in np.flatnonzero(position == -1).tolist():
        meant = np.unique(match_genes(texts[3][i].split("|"), genes).position)
        meant = meant[meant >= 0]
        if meant.size:
            position[i], renamed[i] = (meant[0], True) if meant.size == 1 else (-2, False)
    code = code.reshape(-1)
    spelled = [name if name not in ("-", "") else other for name, other in zip(*texts[:2], strict=True)]
    return [spelled[i] for i in code], GeneNames(position[code], renamed[code])


def _measurements(
    name: str, rows: Interactions, ends: tuple[GeneNames, ...], wanted: Flags, genes: GeneIndex
) -> tuple[dict[str, pd.DataFrame], str]:
    """Return genetic interactions as tables that ``wildtype data import`` reads, and a note on them.

    One table holds the rows with a score, the other one those that only say that there is an interaction,
    with the value 1. A score means what its study says, so that the column ``study`` stands beside it.
    """
    import pandas as pd

    one, other = (end.position for end in ends)
    usable = wanted & (one >= 0) & (other >= 0) & (one != other)
    if not usable.any():
        return {}, ""
    score = rows.text("score").map(_number, np.float64)
    system, author, source = (rows.text(what) for what in ("system", "author", "publication"))
    out = {}
    for what, mask in (("scores", np.isfinite(score)), ("calls", ~np.isfinite(score))):
        at = np.flatnonzero(usable & mask)
        rows_at = at.tolist()
        if rows_at:
            out[f"{name}_genetic_{what}.csv"] = pd.DataFrame(
                {
                    "genes": [f"{genes.names[one[i]]};{genes.names[other[i]]}" for i in rows_at],
                    "phenotype": [system[i] + ("" if what == "scores" else " reported") for i in rows_at],
                    "value": score[at] if what == "scores" else np.ones(at.size),
                    "study": [f"{author[i]}, {source[i]}" for i in rows_at],
                }
            )
    left = int((wanted & ~usable).sum())
    rest = f", {left:,} more have no two genes" if left else ""
    return out, f"{int(usable.sum()):,} genetic interactions can be written as measurements{rest}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
