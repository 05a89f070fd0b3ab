"""The wild type with fewer or with meaningless gene graphs: what models make of them is the difference.

Features that are read off the graphs follow: without a relation, its spectral positions and its degrees are
gone too; in a rewired organism spectral positions are those of the random graphs, and degrees stay, since
rewiring keeps them. Everything else stays as it is, so that the difference is due to the wiring alone. What
was never read off the relations therefore still holds biology: annotations (the block ``go_process``), the
metabolism and its rules, phenotypes of single deletions. Feature blocks are left out with
``model.leave_out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wildtype.errors import ConfigError
from wildtype.organism.features import FeatureBlock, GeneFeatures
from wildtype.organism.graph_features import DEGREES, SPECTRAL, spectral_components
from wildtype.organism.organism import Organism
from wildtype.organism.relations import GeneGraphs
from wildtype.organism.rewiring import rewire


def choose_relations(organism: Organism, only: Sequence[str] = (), without: Sequence[str] = ()) -> Organism:
    """Return the organism with these relations alone, and with the features read off them alone.

    Parameters
    ----------
    organism : Organism
        The whole.
    only : sequence of str
        Relations to keep, which stay in the organism's order; none named: all.
    without : sequence of str
        Relations to leave out of those.

    Raises
    ------
    ConfigError
        If a relation is unknown, or is to be kept and left out.
    """
    for setting, names in (("data.graphs", only), ("data.without", without)):
        for name in names:
            if name not in organism.graphs:
                known = ", ".join(organism.graphs) or "none"
                raise ConfigError(f"{setting} names {name!r}, which is no relation here; known: {known}")
    for name in without:
        if name in only:
            raise ConfigError(f"relation {name!r} stands in data.graphs and in data.without: choose one")
    kept = [name for name in organism.graphs if (not only or name in only) and name not in without]
    gone = set(organism.graphs) - set(kept)
    if not gone:
        return organism
    blocks = [_without(block, gone) for block in organism.features.values()]
    return replace(
        organism,
        graphs=organism.graphs.select(kept),
        features=GeneFeatures(block for block in blocks if block is not None),
        description=f"{organism.description}; without the gene graphs {', '.join(sorted(gone))}",
    )


def rewire_relations(organism: Organism, seed: int) -> Organism:
    """Return the organism with every relation rewired at random, every degree kept; see ``rewire``.

    Spectral blocks are computed anew, with as many columns where the random graph is large enough.
    """
    graphs = GeneGraphs(rewire(relation, seed) for relation in organism.graphs.values())
    blocks = []
    for block in organism.features.values():
        relation = graphs.get(block.name.removeprefix(SPECTRAL)) if block.name.startswith(SPECTRAL) else None
        if relation is not None:
            values = spectral_components(relation, block.values.shape[1])
            columns = block.columns[: values.shape[1]]
            block = replace(block, values=values, columns=columns, note=relation.note)
        blocks.append(block)
    description = f"{organism.description}; every gene graph rewired at random, degrees kept (seed {seed})"
    return replace(organism, graphs=graphs, features=GeneFeatures(blocks), description=description)


def _without(block: FeatureBlock, gone: set[str]) -> FeatureBlock | None:
    """Return a block without what it says of relations that are gone; None if nothing is left."""
    if block.name.startswith(SPECTRAL):
        return None if block.name.removeprefix(SPECTRAL) in gone else block
    if block.name != DEGREES:
        return block
    lost = {column for name in gone for column in (name, f"{name}.out", f"{name}.in")}
    keep = [i for i, column in enumerate(block.columns) if column not in lost]
    if not keep:
        return None
    return replace(block, values=block.values[:, keep], columns=tuple(block.columns[i] for i in keep))
