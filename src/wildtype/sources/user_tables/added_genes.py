"""Tables of foreign genes that strains carry: what is known of each, for ``data import --added-genes``.

One row per gene. Column ``gene`` names it; all others may be left out, and so may any cell:

    sequence       coding sequence or protein
    edges          relation: GENE GENE=weight; another relation: …   (``relation.in``: edges to the gene)
    reactions      ids of reactions that it also catalyses, or new ones, with ; between them:
                   PFK; PFL if pfkC and b3951; CRTB: 2 ggpp_c -> phyto_c + 2 ppi_c
    block.column   a feature of the organism, by its block and column
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError, WildtypeError, did_you_mean, shown
from wildtype.organism import Organism
from wildtype.organism.added_gene import AddedGene
from wildtype.organism.new_reactions import ARROW, NewReaction
from wildtype.sources.user_tables.numbers import is_missing
from wildtype.tables import NO_NUMBER, read_frame

GENE, SEQUENCE, EDGES, REACTIONS = "gene", "sequence", "edges", "reactions"
OWN = (GENE, SEQUENCE, EDGES, REACTIONS)
SHOWN = 5
"""Problems that a message lists."""
_IF = re.compile(r"\s+if\s+")


def read_added_genes(path: str | Path, organism: Organism) -> tuple[AddedGene, ...]:
    """Return the foreign genes of a table, each checked against the organism.

    Parameters
    ----------
    path : path
        CSV or Parquet, with the columns above.
    organism : Organism
        That they are to be added to.

    Raises
    ------
    SourceError
        If the file cannot be read, has no column ``gene`` or an unknown one, or any row does not fit; the
        message has the problems of all rows.
    """
    frame = read_frame(path, "added genes")
    if GENE not in frame.columns:
        found = ", ".join(shown(str(name)) for name in frame.columns)
        raise SourceError(
            f"{str(path)!r} has no column {GENE!r} (it has {found}): name the column of genes so"
        )
    features = {str(name): _feature(str(name), organism, path) for name in frame.columns if name not in OWN}
    problems, genes = list[str](), list[AddedGene]()
    for row, cells in enumerate(frame.to_dict("records"), start=1):
        texts = {
            str(key): "" if is_missing(str(x)) or str(x) in NO_NUMBER else str(x).strip()
            for key, x in cells.items()
        }
        try:
            gene = _gene(texts, features)
            # Added at once: what does not fit the organism is a problem of this row of the table.
            organism = gene.added_to(organism)
            genes.append(gene)
        except WildtypeError as error:
            problems.append(f"row {row}: {error}")
    if problems:
        more = f"; and {len(problems) - SHOWN:,} more" if len(problems) > SHOWN else ""
        raise SourceError(f"{str(path)!r} is no table of added genes: {'; '.join(problems[:SHOWN])}{more}")
    return tuple(genes)


def _feature(name: str, organism: Organism, path: str | Path) -> tuple[str, str]:
    """Return the block and the column that the name of a table's column means."""
    known = {
        f"{b.name}.{column}": (b.name, column) for b in organism.features.values() for column in b.columns
    }
    if name not in known:
        others = f"known: {', '.join(OWN)}, and features as block.column"
        hint = did_you_mean(name, [*OWN, *known], others, count=1)
        raise SourceError(f"{str(path)!r} has a column {shown(name)}, which is not known; {hint}")
    return known[name]


def _gene(texts: dict[str, str], columns: dict[str, tuple[str, str]]) -> AddedGene:
    features: dict[str, dict[str, float]] = {}
    for name, (block, column) in columns.items():
        if texts[name]:
            try:
                value = float(texts[name])
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise SourceError(f"column {shown(name)} has {shown(texts[name])}, expected a number")
            features.setdefault(block, {})[column] = value
    return AddedGene(
        texts[GENE],
        texts.get(SEQUENCE) or None,
        features,
        [_reaction(part.strip()) for part in texts.get(REACTIONS, "").split(";") if part.strip()],
        _edges(texts.get(EDGES, "")),
    )


def _reaction(text: str) -> str | tuple[str, str] | NewReaction:
    what, *needs = _IF.split(text, maxsplit=1)
    name, colon, equation = what.partition(":")
    if colon and ARROW.search(equation):
        return NewReaction(name.strip(), equation.strip(), needs[0].strip() if needs else "")
    return (what.strip(), needs[0].strip()) if needs else what.strip()


def _edges(text: str) -> dict[str, list[tuple[str, float]]]:
    out: dict[str, list[tuple[str, float]]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        relation, colon, genes = part.partition(":")
        if not colon or not genes.split():
            raise SourceError(
                f"edges {shown(part)} name no relation or no gene: write them as in physical: GENE1 GENE2=0.5"
            )
        for entry in genes.replace(",", " ").split():
            gene, equals, weight = entry.partition("=")
            try:
                number = float(weight) if equals else 1.0
            except ValueError:
                raise SourceError(f"edge {shown(entry)} has a weight that is no number") from None
            out.setdefault(relation.strip(), []).append((gene, number))
    return out


def unknown_added(measurements: Measurements, organism: Organism) -> tuple[AddedGene, ...]:
    """Return the genes that strains were given and the organism lacks: nothing but their names is known."""
    added = np.unique(measurements.gene[measurements.kind == PerturbationKind.ADDITION])
    names: Sequence[str] = [measurements.genes[g] for g in added.tolist()]
    return tuple(AddedGene(name) for name in names if name not in organism.genes)
