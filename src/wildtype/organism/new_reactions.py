"""A reaction that a foreign gene brings: its equation, with metabolites that the network may not have yet.

Legend: m metabolites · r reactions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wildtype.errors import DatasetError, SourceError, shown
from wildtype.organism.gene_rules import rule_genes
from wildtype.organism.metabolism import Metabolism

LARGEST_FLUX = 1000.0
"""Bound of a reaction that nothing bounds (mmol per gram dry weight and hour)."""
ARROW = re.compile(r"\s*(<=>|<->|-->|->|=>)\s*")


@dataclass(frozen=True)
class NewReaction:
    """A reaction that the network does not have.

    Attributes
    ----------
    name : str
        Its id.
    equation : str
        As in ``a_c + 2 b_c -> c_c``, or ``<=>`` where it is reversible. Metabolites that the network lacks
        are added to it; a side may be empty (uptake, secretion).
    needs : str
        What it needs, as a gene rule; empty: the new gene alone.
    """

    name: str
    equation: str
    needs: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """Flux bounds."""
        found = ARROW.search(self.equation)
        return (-LARGEST_FLUX if found and found[1].startswith("<") else 0.0, LARGEST_FLUX)

    def coefficients(self) -> dict[str, float]:
        """Return the coefficient of every metabolite, negative where it is consumed.

        Raises
        ------
        SourceError
            If the equation is none.
        """
        sides = ARROW.split(self.equation)
        if len(sides) != 3:
            raise SourceError(
                f"reaction {shown(self.name)}: {shown(self.equation)} is no equation: write it as in "
                f"a_c + 2 b_c -> c_c, or <=> where it is reversible"
            )
        out: dict[str, float] = {}
        for side, sign in ((sides[0], -1.0), (sides[2], 1.0)):
            for term in filter(None, (part.strip() for part in re.split(r"\s\+\s", side))):
                *count, metabolite = term.split()
                try:
                    number = float(count[0]) if count else 1.0
                except ValueError:
                    number = math.nan
                if len(count) > 1 or not 0 < number < math.inf:
                    raise SourceError(
                        f"reaction {shown(self.name)}: {shown(term)} is no metabolite with a positive number "
                        f"before it: write it as in 2 atp_c"
                    )
                out[metabolite] = out.get(metabolite, 0.0) + sign * number
        if not any(out.values()):
            raise SourceError(f"reaction {shown(self.name)} changes no metabolite: correct its equation")
        return {name: number for name, number in out.items() if number}


def with_new_reactions(metabolism: Metabolism, gene: str, reactions: Sequence[NewReaction]) -> Metabolism:
    """Return the network with reactions of a new gene, and their new metabolites, behind its own.

    Raises
    ------
    DatasetError
        If a reaction has the name of another, or its rule does not name the gene.
    SourceError
        If an equation or a rule is not well formed.
    """
    known = set(metabolism.reactions)
    row = {name: i for i, name in enumerate(metabolism.metabolites)}
    entries = []
    for column, reaction in enumerate(reactions):
        if reaction.name in known:
            raise DatasetError(
                f"{gene!r} is given the new reaction {reaction.name!r}, and the network has one of that "
                f"name: give its id alone to join it, or choose another name"
            )
        known.add(reaction.name)
        if gene not in rule_genes(reaction.needs or gene):
            raise DatasetError(
                f"{gene!r} is given the new reaction {reaction.name!r} with the rule {reaction.needs!r}, "
                f"which does not name it: add it with and"
            )
        for metabolite, number in reaction.coefficients().items():
            entries.append((row.setdefault(metabolite, len(row)), column, number))
    r = len(metabolism.reactions)
    i, j, s = (np.array(axis) for axis in zip(*entries, strict=True))
    new = sparse.coo_array((s, (i, j)), shape=(len(row), len(reactions)))
    old = metabolism.stoichiometry.tocoo()
    wider = sparse.coo_array((old.data, old.coords), shape=(len(row), r))
    lower, upper = np.array([reaction.bounds for reaction in reactions]).T
    return Metabolism.build(
        [*metabolism.reactions, *(reaction.name for reaction in reactions)],
        list(row),
        sparse.csr_array(sparse.hstack([wider, new])),
        np.append(metabolism.lower, lower),
        np.append(metabolism.upper, upper),
        np.append(metabolism.objective, np.zeros(len(reactions))),
        [*metabolism.rules, *(reaction.needs or gene for reaction in reactions)],
    )
