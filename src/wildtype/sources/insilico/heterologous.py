"""Foreign enzymes that can be added to the core metabolism of E. coli, and the organism that knows them.

Every reaction uses metabolites of the core model only and is balanced in elements and charge (a test). It is
closed in the wild type and open in a mutant to which its gene was added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from wildtype.errors import DatasetError
from wildtype.organism import Metabolism
from wildtype.organism.new_reactions import NewReaction
from wildtype.sources.insilico.models import InSilicoModel


@dataclass(frozen=True)
class ForeignReaction:
    """A reaction that a foreign gene brings.

    Attributes
    ----------
    name, gene : str
        Identifiers; a gene may bring several reactions.
    equation : str
        As in ``"a_c + 2 b_c -> c_c"``, by metabolites of the model; ``<=>`` where it is reversible.
    enzyme : str
        What it is and where it is known from.
    """

    name: str
    gene: str
    equation: str
    enzyme: str

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the flux bounds when the gene is there."""
        return NewReaction(self.name, self.equation).bounds

    def coefficients(self) -> dict[str, float]:
        """Return the stoichiometric coefficient of every metabolite, negative where it is consumed."""
        return NewReaction(self.name, self.equation).coefficients()


FOREIGN = (
    ForeignReaction(
        "FPK",
        "xfp",
        "f6p_c + pi_c -> actp_c + e4p_c + h2o_c",
        "fructose 6-phosphate phosphoketolase, Bifidobacterium",
    ),
    ForeignReaction(
        "XPK",
        "xfp",
        "xu5p__D_c + pi_c -> actp_c + g3p_c + h2o_c",
        "xylulose 5-phosphate phosphoketolase, Bifidobacterium",
    ),
    ForeignReaction(
        "PC",
        "pyc",
        "atp_c + co2_c + h2o_c + pyr_c -> adp_c + oaa_c + pi_c + 2 h_c",
        "pyruvate carboxylase, Rhizobium etli",
    ),
    ForeignReaction(
        "GAPDN",
        "gapN",
        "g3p_c + h2o_c + nadp_c -> 3pg_c + nadph_c + 2 h_c",
        "NADP-dependent non-phosphorylating glyceraldehyde 3-phosphate dehydrogenase, Streptococcus mutans",
    ),
    ForeignReaction(
        "GAPDP",
        "gapC",
        "g3p_c + nadp_c + pi_c <=> 13dpg_c + nadph_c + h_c",
        "NADP-dependent glyceraldehyde 3-phosphate dehydrogenase, Clostridium acetobutylicum",
    ),
    ForeignReaction(
        "PDC", "pdc", "pyr_c + h_c -> acald_c + co2_c", "pyruvate decarboxylase, Zymomonas mobilis"
    ),
    ForeignReaction(
        "FDHN", "fdh", "for_c + nad_c -> co2_c + nadh_c", "formate dehydrogenase, Candida boidinii"
    ),
    ForeignReaction(
        "NOX",
        "noxE",
        "2 nadh_c + 2 h_c + o2_c -> 2 nad_c + 2 h2o_c",
        "water-forming NADH oxidase, Lactococcus lactis",
    ),
    ForeignReaction(
        "ACITL",
        "acl",
        "atp_c + cit_c + coa_c -> adp_c + pi_c + accoa_c + oaa_c",
        "ATP citrate lyase, Chlorobium",
    ),
    ForeignReaction(
        "GLUDx",
        "gdhB",
        "glu__L_c + h2o_c + nad_c <=> akg_c + nh4_c + nadh_c + h_c",
        "NAD-dependent glutamate dehydrogenase, Peptoniphilus asaccharolyticus",
    ),
    ForeignReaction(
        "ACSADP",
        "acd",
        "ac_c + atp_c + coa_c <=> accoa_c + adp_c + pi_c",
        "ADP-forming acetyl-CoA synthetase, Pyrococcus furiosus",
    ),
    ForeignReaction(
        "G6PDHx",
        "zwfN",
        "g6p_c + nad_c -> 6pgl_c + nadh_c + h_c",
        "NAD-dependent glucose 6-phosphate dehydrogenase, Leuconostoc mesenteroides",
    ),
)


def foreign_bounds(metabolism: Metabolism) -> dict[int, tuple[float, float]]:
    """Return the bounds that foreign reactions of a network have when they are open, by position."""
    known = {reaction.name: reaction for reaction in FOREIGN}
    return {
        r: known[name].bounds
        for r, name in enumerate(metabolism.reactions)
        if name in known and metabolism.rules[r] == known[name].gene
    }


def extend(metabolism: Metabolism, *, closed: bool) -> Metabolism:
    """Return a network with the foreign reactions behind its own, ``closed`` or open.

    Raises
    ------
    DatasetError
        If the network lacks a metabolite, or has a reaction of one of these names.
    """
    row = {name: i for i, name in enumerate(metabolism.metabolites)}
    entries = []
    for column, reaction in enumerate(FOREIGN):
        if reaction.name in metabolism.reactions:
            raise DatasetError(
                f"the metabolism has a reaction {reaction.name!r} of its own: it is no core model"
            )
        for metabolite, coefficient in reaction.coefficients().items():
            if metabolite not in row:
                raise DatasetError(
                    f"the metabolism has no metabolite {metabolite!r}, which foreign reaction "
                    f"{reaction.name!r} needs: it is no core model"
                )
            entries.append((row[metabolite], column, coefficient))
    i, j, s = (np.array(axis) for axis in zip(*entries, strict=True))
    new = sparse.coo_array((s, (i, j)), shape=(len(row), len(FOREIGN)))
    lower, upper = np.array([(0.0, 0.0) if closed else reaction.bounds for reaction in FOREIGN]).T
    return Metabolism.build(
        [*metabolism.reactions, *(reaction.name for reaction in FOREIGN)],
        metabolism.metabolites,
        sparse.csr_array(sparse.hstack([metabolism.stoichiometry, new])),
        np.append(metabolism.lower, lower),
        np.append(metabolism.upper, upper),
        np.append(metabolism.objective, np.zeros(len(FOREIGN))),
        [*metabolism.rules, *(reaction.gene for reaction in FOREIGN)],
    )


def with_foreign_genes(model: InSilicoModel, name: str) -> InSilicoModel:
    """Return a model whose gene index ends with the foreign genes and whose foreign reactions are open.

    Its wild-type flux is that of the closed network: foreign reactions carry none. Errors as in ``extend``.
    """
    foreign = sorted({reaction.gene for reaction in FOREIGN})
    told = {gene: "; ".join(r.enzyme for r in FOREIGN if r.gene == gene) for gene in foreign}
    return replace(
        model,
        name=name,
        genes=model.genes.extended(foreign, organism=name, descriptions=told),
        metabolism=extend(model.metabolism, closed=False),
        subsystems=(*model.subsystems, *("Foreign" for _ in FOREIGN)),
        wild_type_flux=np.append(model.wild_type_flux, np.zeros(len(FOREIGN))),
    )
