"""Readouts of the cell transformer: what they do not depend on, and what they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.tiny import similar_genes, tiny_organism
from wildtype.errors import ConfigError
from wildtype.evidence.lookup import EvidenceIndex
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.cell_transformer.config import (
    CellTransformerConfig,
    EvidenceConfig,
    HeadConfig,
    PriorConfig,
)
from wildtype.models.cell_transformer.head import smallest_part
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors, WildType, organism_tensors
from wildtype.models.organism_tensors import from_tensors, to_tensors
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch

N = 24
SIMILARITY = similar_genes(N)
MEASURED = MutantTable.from_matrix(
    np.stack([np.arange(0, 20), np.arange(3, 23)], axis=1), value=np.linspace(-1, 1, 20)
)
INDEX = EvidenceIndex(SIMILARITY, MEASURED, 1)


def model(config: CellTransformerConfig) -> tuple[CellTransformer, OrganismTensors]:
    torch.manual_seed(0)
    made = CellTransformer(
        config,
        genes=N,
        features=0,
        phenotypes=1,
        relations=["physical", "regulatory"],
        channels=len(SIMILARITY.channels),
        traits=len(SIMILARITY.trait_names),
    ).eval()
    return made, organism_tensors(made, tiny_organism(N), torch.zeros(N, 0), SIMILARITY)


def asked(sets: list[list[int]]) -> MutantBatch:
    batch = MutantBatch.from_table(MutantTable.from_sets(sets))
    batch.evidence = INDEX.tokens_of(batch)
    return batch


CONFIG = CellTransformerConfig(width=16, layers=1, heads=4, prior=PriorConfig(weight=0.1))


def test_a_prediction_depends_on_the_set_alone() -> None:
    made, organism = model(CONFIG)
    wild_type = made.encode(organism)
    sets = [[1, 5], [2], [0, 7, 9], [4, 6]]
    whole = made(wild_type, asked(sets)).mean
    for row, genes in enumerate(sets):
        alone = made(wild_type, asked([genes])).mean[0]
        torch.testing.assert_close(alone, whole[row], rtol=1e-5, atol=1e-6)


def test_evidence_without_its_gaps_says_the_same() -> None:
    made = model(CONFIG)[0].double()
    readout = made.head.evidence
    assert readout is not None
    h = torch.randn(N, CONFIG.width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wild_type = WildType(h.mean(0), h)
    # Genes that were met before, new ones, and measured mutants, which know all but a tenth of the others.
    for sets in ([[1, 5], [2], [0, 7, 9]], [[4, 6], [22, 23]], [[0, 3], [5, 1], [7, 10], [8, 11]]):
        batch = asked(sets)
        assert batch.evidence is not None
        tokens = batch.evidence.double()
        assert 0 < int(tokens.one.mask.sum()) < tokens.one.mask.numel()
        with_gaps = readout(wild_type, batch, tokens)
        assert with_gaps.requires_grad
        with torch.no_grad():
            without = readout(wild_type, batch, tokens)
        torch.testing.assert_close(without, with_gaps, rtol=1e-9, atol=1e-9)
    there = {number: kept[1].nonzero()[:, 0].tolist() for number, kept in wild_type.described.items()}
    assert max(there.values(), key=len) == [0, 1, 2, 4, 5, 6, 7, 9, 22, 23]
    assert len(there) > 2
    assert {gene for genes in there.values() for gene in genes} == {*range(12), 22, 23}


def test_half_precision_predicts_nearly_the_same() -> None:
    made, organism = model(CONFIG)
    batch = asked([[1, 5], [2], [0, 7, 9], [0, 3]])
    with torch.no_grad():
        single = made(made.encode(organism), batch).mean
        with torch.autocast("cpu", torch.bfloat16):
            half = made(made.encode(organism), batch).mean
    torch.testing.assert_close(half.float(), single, rtol=0.05, atol=0.02)
    assert not torch.equal(half.float(), single)


@pytest.mark.parametrize(
    "settings",
    [
        {"head": HeadConfig(relations=False)},
        {"head": HeadConfig(additive=False)},
        {"head": HeadConfig(direct=[])},
        {"head": HeadConfig(heads=0)},
        {"head": HeadConfig(direct=[], heads=0)},
        {"evidence": EvidenceConfig(tokens=0)},
        {"layers": 0},
    ],
)
def test_each_readout_can_be_switched_off(settings: dict[str, object]) -> None:
    made, organism = model(replace(CONFIG, **settings))  # type: ignore[arg-type]
    fewer = sum(p.numel() for p in made.parameters())
    assert fewer < sum(p.numel() for p in model(CONFIG)[0].parameters())
    out = made(made.encode(organism), asked([[1, 5], [2]])).mean
    out.sum().backward()
    assert torch.isfinite(out).all()
    unused = [name for name, p in made.head.named_parameters() if p.grad is None]
    assert all(name.startswith(("dose", "relations.logits")) for name in unused)


def test_the_additive_model_is_added() -> None:
    made, organism = model(CONFIG)
    batch = asked([[1, 5]])
    before = made(made.encode(organism), batch).mean
    assert batch.evidence is not None
    batch.evidence.genes.additive += torch.tensor([[0.5], [0.25]])
    after = made(made.encode(organism), batch).mean
    assert (after - before).item() == pytest.approx(0.75, abs=1e-5)


def test_logits_of_regularised_heads_are_those_of_attention() -> None:
    made, organism = model(CONFIG)
    wild_type = made.encode(organism)
    assert wild_type.regularised is not None
    q, k = wild_type.regularised
    assert q.shape == k.shape == (N, 2, 4)
    layer = made.encoder.layers[0]
    x = torch.cat([made.encoder.cls[None], made.encoder.table])
    own = layer.qkv(layer.attention_norm(x)).view(N + 1, 3, 4, 4)[1:]
    logits = own[:, 0, 1] @ own[:, 1, 1].T / 2
    torch.testing.assert_close(q[:, 1] @ k[:, 1].T, logits)


def test_a_batch_without_evidence_is_refused() -> None:
    made, organism = model(CONFIG)
    batch = MutantBatch.from_table(MutantTable.from_sets([[1, 2]]))
    with pytest.raises(ConfigError, match="no evidence was looked up"):
        made(made.encode(organism), batch)


def test_similarity_is_stored_with_the_organism() -> None:
    _, organism = model(CONFIG)
    found = from_tensors(*to_tensors(organism)).similarity
    assert found is not None
    assert found.channels == SIMILARITY.channels
    assert found.trait_names == SIMILARITY.trait_names
    for name in ("unit", "cuts", "indptr", "indices", "data", "scale", "traits"):
        np.testing.assert_array_equal(getattr(found, name), getattr(SIMILARITY, name))


def test_another_organism_takes_the_same_channels() -> None:
    other = tiny_organism(30, seed=3)
    renamed = replace(
        other,
        graphs=type(other.graphs)(
            [other.graphs["regulatory"], replace(other.graphs["physical"], name="new")]
        ),
    )
    found = GeneSimilarity.of(renamed, like=SIMILARITY)
    assert found.channels == SIMILARITY.channels
    assert found.genes == 30
    part = EvidenceIndex(found, MEASURED.take([]), 1).part()
    genes = np.arange(30)
    channels = part.similar(np.repeat(genes, 30), np.tile(genes, 30))
    assert not channels[:, found.channels.index("physical")].any()
    assert channels[:, found.channels.index("regulatory")].any()


def test_the_output_starts_from_the_smallest_part() -> None:
    singles = MutantTable.from_sets([[1], [5], [9]], value=[0.5, -0.25, 2.0])
    index = EvidenceIndex(SIMILARITY, singles, 1)
    batch = MutantBatch.from_table(MutantTable.from_sets([[1, 5], [1, 9], [2, 3], [5]]))
    tokens = index.tokens_of(batch)
    assert smallest_part(tokens, 1)[:, 0].tolist() == [-0.25, 0.5, 0.0, 0.0]


def test_sets_larger_than_those_of_training_are_taken_as_the_largest() -> None:
    made, organism = model(
        replace(CONFIG, head=HeadConfig(relations=False), evidence=EvidenceConfig(tokens=0))
    )
    made.train()(made.encode(organism), asked([[1], [2, 5]]))
    assert made.head.largest_order == 2
    made.eval()
    wild_type, batch = made.encode(organism), asked([[1, 2, 5]])
    before = made(wild_type, batch).mean
    with torch.no_grad():
        made.head.order.weight[3:] += 9
    assert torch.equal(before, made(wild_type, batch).mean)
