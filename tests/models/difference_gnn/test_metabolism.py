"""Reactions and metabolites as nodes: each mutant's own network, cut out and computed densely."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from tests.models.difference_gnn.problems import RELATIONS, N, batch_of, build, organism
from wildtype.errors import ConfigError
from wildtype.models.difference_gnn.metabolism import Wiring
from wildtype.models.interface import MetabolismTensors, OrganismTensors, organism_tensors
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.cell_graph import CellGraph
from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
from wildtype.organism.metabolism import Metabolism

NAMES = [f"G{i:02d}" for i in range(N)]
RULES = ["G00 and G01", "G02 or (G03 and G04)", "", "G05", "G00 or unknown", "(G06 or G07) and G08"]
SETS = [
    ([0], [Kind.ABSENT]),
    ([2, 3], [Kind.ABSENT, Kind.REDUCED]),
    ([5, 8], [Kind.ABSENT] * 2),
    ([6, 1, 12], [Kind.ABSENT, Kind.OVEREXPRESSED, Kind.ABSENT]),
    ([], []),
    (list(range(N)), [Kind.ABSENT] * N),
]
DEAD = [[0], [1], [3, 5], [], [], [0, 1, 3, 5]]


def metabolism() -> Metabolism:
    draw = np.random.default_rng(0)
    stoichiometry = draw.integers(-2, 3, (4, len(RULES))).astype(float)
    ones = np.ones(len(RULES))
    return Metabolism.build(
        [f"R{i}" for i in range(len(RULES))],
        [f"M{i}" for i in range(4)],
        sparse.csr_array(stoichiometry),
        -ones,
        ones,
        ones,
        RULES,
    )


def graph() -> CellGraph:
    return CellGraph(GeneIndex(NAMES, organism="tiny"), {}, metabolism())


def tensors() -> OrganismTensors:
    out = organism()
    out.metabolism = MetabolismTensors.of(graph())
    return out


def metabolic(**settings):
    return build(metabolism=True, reactions=len(RULES), metabolites=4, **settings)


def test_reactions_die_as_their_rules_say():
    gone = torch.zeros(len(SETS), N, dtype=torch.bool)
    for row, (genes, kinds) in enumerate(SETS):
        gone[row, [g for g, k in zip(genes, kinds, strict=True) if k != Kind.OVEREXPRESSED]] = True
    dead = Wiring.of(MetabolismTensors.of(graph())).dead(gone)
    assert [row.nonzero().flatten().tolist() for row in dead] == DEAD
    table = MutantTable.from_sets([torch.nonzero(row).flatten().tolist() for row in gone], value=np.zeros(6))
    assert np.array_equal(~dead.numpy(), metabolism().alive(GeneIndex(NAMES, organism="tiny"), table))


def definition(model, organism: OrganismTensors, genes: list[int], dead: list[int]) -> torch.Tensor:
    """Pooled genes, reactions and metabolites [3 d] of the cell without genes and reactions, densely."""
    kept = [i for i in range(N) if i not in genes]
    alive = [i for i in range(len(RULES)) if i not in dead]
    eye = torch.eye(N, dtype=torch.float64)
    relations = [(organism.relations[name] @ eye)[kept][:, kept] for name in model.relations]
    gpr = (organism.metabolism.gpr @ eye)[alive][:, kept]
    coefficients = (organism.metabolism.stoichiometry @ torch.eye(len(RULES), dtype=torch.float64))[:, alive]
    network = model.metabolic
    x, r, m = model.preprocess(model.table)[kept], network.reactions[alive], network.metabolites
    for layer, beside in zip(model.layers, network.layers, strict=True):
        weights = torch.tanh(coefficients * beside.scale)
        r, m = (
            beside.from_genes(r, gpr @ x) + beside.from_metabolites(r, weights.t() @ m),
            beside.from_reactions(m, weights @ r),
        )
        x = layer.aggregate([gin(x, a @ x) for gin, a in zip(layer.gins, relations, strict=True)])
    return torch.cat([model.pool(x), network.pool_reactions(r), network.pool_metabolites(m)])


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("tile", "phenotypes"), [(1, 1), (2, 1), (0, 2), (1, 3)])
def test_equals_the_network_cut_out(layers, tile, phenotypes):
    model = metabolic(layers=layers, tile=tile, phenotypes=phenotypes, combination="global")
    sets, dead, organism = SETS[:-1], DEAD[:-1], tensors()
    weight = torch.randn(len(sets), phenotypes, dtype=torch.float64)

    def plain() -> torch.Tensor:
        whole = definition(model, organism, [], [])
        rows = []
        for (genes, kinds), lost in zip(sets, dead, strict=True):
            removed = [g for g, k in zip(genes, kinds, strict=True) if k != Kind.OVEREXPRESSED]
            gap = whole - definition(model, organism, removed, lost)
            rows.append(model.global_head(gap[:8] + model.metabolic.merge(gap[8:])))
        return torch.stack(rows)

    results = []
    for predict in (lambda: model(model.encode(organism), batch_of(sets)).mean, plain):
        out = predict()
        grads = torch.autograd.grad((out * weight).sum(), list(model.parameters()), allow_unused=True)
        zeros = [
            torch.zeros_like(p) if g is None else g for g, p in zip(grads, model.parameters(), strict=True)
        ]
        results.append([out, *zeros])
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-9)
    assert float(model.metabolic.layers[0].scale.detach()) != 0
    names = [name for name, _ in model.named_parameters()]
    moved = dict(zip(names, results[1][1:], strict=True))
    for part in ("reactions", "metabolites", "layers.0.scale", "merge.weight"):
        assert float(moved[f"metabolic.{part}"].abs().max()) > 0


def test_no_gene_is_left():
    model = metabolic(tile=1)
    assert model(model.encode(tensors()), batch_of(SETS)).mean.isfinite().all()


def test_an_organism_gives_what_the_model_needs():
    relations = [
        Relation.from_edges(name, [0, 1], [1, 2] if name != "empty" else [0, 1], N, directed=True)
        for name in RELATIONS
    ]
    cell = Organism("tiny", graph().genes, GeneGraphs(relations), metabolism=metabolism())
    model = metabolic(dtype=torch.float32)
    assert model.needs == ("relations", "metabolism")
    seen = organism_tensors(model, cell, torch.zeros(N, 0))
    assert model(model.encode(seen), batch_of(SETS)).mean.shape == (len(SETS), 1)


def test_wrong_sizes_are_named():
    with pytest.raises(ConfigError, match="metabolism=true needs reactions and metabolites"):
        build(metabolism=True, metabolites=4)
    model = build(metabolism=True, reactions=9, metabolites=4)
    with pytest.raises(
        ConfigError, match="model.reactions=9 and .*, but the organism has 6 and 4: set these"
    ):
        model.encode(tensors())
    with pytest.raises(ConfigError, match="lack the metabolism"):
        metabolic().encode(organism())
