"""`GeneNames`: completion of gene names from a few typed letters."""

from __future__ import annotations

from dataclasses import dataclass

from wildtype.organism import GeneIndex

SYSTEMATIC, STANDARD, ALIAS = range(3)


@dataclass(frozen=True)
class Match:
    """A gene, by position, and the name of it that matched."""

    gene: int
    name: str


class GeneNames:
    """Completes names of genes: systematic names, standard names and aliases, whatever their case.

    Parameters
    ----------
    genes : GeneIndex
        Of the model.
    """

    def __init__(self, genes: GeneIndex) -> None:
        self._names: list[tuple[str, int, int, str]] = []  # folded, level, gene, original spelling
        for gene, name in enumerate(genes.names):
            spelled = [(SYSTEMATIC, name), *((ALIAS, alias) for alias in genes.aliases.get(name, ()))]
            if name in genes.standard:
                spelled.append((STANDARD, genes.standard[name]))
            self._names += [(text.upper(), level, gene, text) for level, text in spelled]

    def complete(self, text: str, count: int) -> list[Match]:
        """Return up to ``count`` genes that have a name with ``text`` in it, each with its best one.

        Exact names come first, then names that begin with the text, then others. Within each, standard names
        precede systematic names and aliases, short names precede long ones, and the rest is alphabetical.
        """
        typed = text.strip().upper()
        if not typed:
            return []
        order = {STANDARD: 0, SYSTEMATIC: 1, ALIAS: 2}
        found = sorted(
            (0 if folded == typed else 1 if at == 0 else 2, order[level], len(folded), folded, gene, spelled)
            for folded, level, gene, spelled in self._names
            if (at := folded.find(typed)) >= 0
        )
        # The list is sorted best first, so the first match of a gene is its best name.
        best: dict[int, Match] = {}
        for *_, gene, spelled in found:
            best.setdefault(gene, Match(gene, spelled))
        return list(best.values())[:count]
