"""Appended genes and other organisms, from tensors to predictions."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import wildtype as wt
from tests.tiny import tiny_dataset, tiny_organism
from wildtype.errors import CheckpointError, ConfigError, DatasetError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.predictor import Predictor
from wildtype.models.cell_transformer.config import CellTransformerConfig, PriorConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.checkpoint import load_checkpoint
from wildtype.models.interface import OrganismTensors, organism_tensors
from wildtype.mutants.selection import Selection
from wildtype.nn.graph_prior import graph_prior_kl, graph_prior_kl_reference, lse_over_valid_pairs
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, GeneIndex, Organism, Relation

EDGES = {"physical": ["G001", ("G003", 0)], "regulatory": [("G004", 0.5)], "regulatory.in": ["G005"]}
SHAPE = {"shape": [0.5, -1.0, 2.0]}
SETS = [["G001", "G002"], ["G003"], ["abc4", "G005", "G006"], ["G023", "G010"]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model without a learned table."""
    folder = tmp_path_factory.mktemp("runs") / "no-table"
    words = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=1",
             "training.batch_size=64", "baselines=[]", f"run.folder={folder}", "run.progress=false",
             "run.replicates=10", "data.name=tiny-growth", "model.table=false"]  # fmt: skip
    train(compose(words), dataset=tiny_dataset())
    return folder


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return wt.load(run)


def seen(organism: Organism, reverse: tuple[str, ...] = ()) -> OrganismTensors:
    config = CellTransformerConfig(
        width=16, heads=4, layers=1, table=False, prior=PriorConfig(reverse=list(reverse))
    )
    model = CellTransformer(
        config, genes=len(organism.genes), features=3, phenotypes=1, relations=list(organism.graphs)
    )
    return organism_tensors(model, organism, torch.zeros(len(organism.genes), 3))


def per_row(
    q: torch.Tensor, k: torch.Tensor, organism: OrganismTensors, relation: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """KL of every regularised row, as an encoder's layer would get it, and the rows."""
    t = len(q)
    inside = torch.ones(t, dtype=torch.bool)
    inside[organism.outside_tokens] = False
    logits = 0.25 * q @ k.T
    lse = logits[:, inside].logsumexp(1)
    if relation in organism.valid:
        pairs = organism.valid[relation]
        lse = lse_over_valid_pairs(q, k, lse, pairs, organism.outside_tokens, scale=0.25)
    op = organism.priors[relation]
    rows = op.rows_with_edges
    kl = [graph_prior_kl(q, k, lse, op, scale=0.25, rows=row[None]) for row in rows]
    return rows, torch.stack(kl)


@pytest.mark.parametrize("reverse", [(), ("regulatory",)])
def test_the_prior_of_old_rows_stays_given_the_same_q_and_k(reverse: tuple[str, ...]) -> None:
    base = tiny_organism()
    draw = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 27, 8, dtype=torch.float64, generator=draw)
    before = seen(base, reverse)
    after = seen(base.add_gene("NEW1", edges=EDGES).add_gene("NEW2"), reverse)
    assert after.outside.tolist() == [24, 25]
    for relation, touched in (("physical", {1, 3}), ("regulatory", {4} if reverse else {5})):
        rows, old = per_row(q[:25], k[:25], before, relation)
        wider_rows, new = per_row(q, k, after, relation)
        at = dict(zip(wider_rows.tolist(), new, strict=True))
        for row, value in zip(rows.tolist(), old, strict=True):
            same = abs(float(at[row] - value)) < 1e-10
            assert same == (row - 1 not in touched)
        # the new gene's own row: normalised over its listed pairs only
        assert set(wider_rows.tolist()) == set(rows.tolist()) | {25}
        pairs = after.valid[relation]
        op = after.priors[relation]
        listed = pairs[1][pairs[0] == 25]
        alpha = (0.25 * q[25] @ k[listed].T).log_softmax(0)
        target = (op @ torch.eye(27, dtype=torch.float64))[25, listed]
        target = target / target.sum()
        expected = (torch.xlogy(target, target) - target * alpha).sum()
        assert float(at[25]) == pytest.approx(float(expected), abs=1e-10)
    reference = graph_prior_kl_reference(
        q[:25], k[:25], before.priors["physical"], scale=0.25, inside=torch.arange(1, 25)
    )
    assert float(per_row(q[:25], k[:25], before, "physical")[1].mean()) == pytest.approx(float(reference))


def test_mutants_without_the_new_gene_are_answered_to_the_bit(predictor: Predictor) -> None:
    base = tiny_organism()
    wider = predictor.with_genes(base.add_gene("NEW1", features=SHAPE, edges=EDGES))
    before = predictor.predict(SETS)
    mixed = wider.predict([SETS[0], ["NEW1", "G002"], *SETS[1:], ["NEW1:overexpressed", "G002"]])
    kept = mixed.drop(index=[1, 5]).reset_index(drop=True)
    assert kept.equals(before)
    assert mixed["kinds"].iloc[[1, 5]].tolist() == ["absent,added", "absent,overexpressed"]
    assert mixed["genes"].iloc[1] == "G002,NEW1"
    assert np.isfinite(mixed["epsilon"].iloc[[1, 5]]).all()
    assert mixed["epsilon"].iloc[1] != mixed["epsilon"].iloc[5]
    assert wider.remarks == ("NEW1: feature columns not known, taken as the mean: single_fitness (1)",)
    other = predictor.with_genes(base.add_gene("NEW1", features={"shape": [5.0, 5.0, 5.0]}))
    assert other.predict([["NEW1", "G002"]])["epsilon"].iloc[0] != mixed["epsilon"].iloc[1]


def test_features_of_a_new_gene_are_scaled_as_in_training(predictor: Predictor) -> None:
    base = tiny_organism()
    wider = predictor.with_genes(base.add_gene("NEW1", features=SHAPE)).checkpoint
    values = base.features["shape"].values.astype(np.float64)
    expected = (np.array(SHAPE["shape"]) - values.mean(0)) / values.std(0)
    old = predictor.checkpoint.organism.features
    assert torch.equal(wider.organism.features[:24], old)
    np.testing.assert_allclose(wider.organism.features[24, :3], expected, rtol=1e-5)
    assert wider.organism.outside.tolist() == [24]


def test_what_cannot_be_extended_says_why(predictor: Predictor, tiny_run: Path) -> None:
    base = tiny_organism()
    wider = base.add_gene("NEW1")
    with pytest.raises(ConfigError, match=r"none for appended genes: train with model\.table=false"):
        wt.load(tiny_run).with_genes(wider)
    with pytest.raises(ConfigError, match=r"none for genes of another organism: .*model\.table=false"):
        wt.load(tiny_run).on(base)
    with pytest.raises(DatasetError, match="has no appended gene"):
        predictor.with_genes(base)
    with pytest.raises(DatasetError, match="lacks 2 genes of the model, as G000"):
        predictor.with_genes(wider.restrict(np.arange(2, 25)))
    with pytest.raises(DatasetError, match="'NEW1' is a token of the model already"):
        predictor.with_genes(wider).with_genes(wider)
    older = Predictor(replace(predictor.checkpoint, features=None))
    with pytest.raises(CheckpointError, match="does not say what its gene features are"):
        older.with_genes(wider)


def test_names_of_columns_are_kept_with_the_checkpoint(
    predictor: Predictor, run: Path, tmp_path: Path
) -> None:
    predictor.checkpoint.save(tmp_path / "again")
    for checkpoint in (load_checkpoint(run), load_checkpoint(tmp_path / "again")):
        assert checkpoint.features is not None
        features = GeneFeatures(
            [
                *tiny_organism().features.values(),
                FeatureBlock("single_fitness", tiny_dataset().single_fitness[:, None], ("fitness",)),
            ]  # type: ignore[index]
        )
        np.testing.assert_array_equal(
            checkpoint.features.transform(features, 24), checkpoint.organism.features
        )


def cousin() -> Organism:
    """Another organism: seven genes, one relation of the same name and one more, one feature column less."""
    draw = np.random.default_rng(3)
    graphs = GeneGraphs(
        [
            Relation.from_edges("physical", [0, 1, 2], [1, 2, 5], 7, directed=False),
            Relation.from_edges("its own", [0, 1], [3, 2], 7, directed=True),
        ]
    )
    block = FeatureBlock("shape", draw.normal(size=(7, 2)).astype(np.float32), ("c", "a"))
    own = FeatureBlock("axes", draw.normal(size=(7, 2)).astype(np.float32), ("c1", "c2"), comparable=False)
    names = GeneIndex([f"C{i}" for i in range(7)], organism="cousin")
    return Organism("cousin", names, graphs, GeneFeatures([block, own]))


def test_a_model_runs_on_another_organism_by_the_names_of_columns(predictor: Predictor) -> None:
    organism = cousin()
    other = predictor.on(organism)
    frame = other.predict([["C0", "C3"], ["C6"]])
    assert np.isfinite(frame["epsilon"].iloc[0])
    assert frame["genes_seen"].tolist() == [0, 0]
    assert np.isnan(frame["epsilon_measured"]).all()
    values = tiny_organism().features["shape"].values.astype(np.float64)
    found = other.checkpoint.organism.features.numpy()
    expected = (organism.features["shape"].values[:, [1, 0]] - values.mean(0)[[0, 2]]) / values.std(0)[[0, 2]]
    np.testing.assert_allclose(found[:, [0, 2]], expected, rtol=1e-4, atol=1e-5)
    assert (found[:, 1] == 0).all()
    said = "; ".join(other.remarks)
    assert "2 of the model's 4 feature columns" in said
    assert "taken as the mean: shape (1), single_fitness (1)" in said
    assert "lacks: regulatory" in said


def test_axes_of_another_organism_are_not_taken_for_the_models(run: Path) -> None:
    checkpoint = load_checkpoint(run)
    assert checkpoint.features is not None
    blocks = tuple(replace(b, comparable=b.name != "shape") for b in checkpoint.features.blocks)
    organism = cousin()
    shape = replace(organism.features["shape"], comparable=False)
    organism = replace(organism, features=GeneFeatures([shape]))
    own = Predictor(replace(checkpoint, features=replace(checkpoint.features, blocks=blocks)))
    other = own.on(organism)
    assert (other.checkpoint.organism.features == 0).all()
    assert "not comparable between organisms, taken as missing: shape (3)" in other.remarks
    again = own.on(replace(organism, name="tiny"))  # its own organism, in another version
    assert (again.checkpoint.organism.features != 0).any()


def test_a_run_of_a_list_says_so_on_another_organism(predictor: Predictor) -> None:
    (phenotype,) = predictor.checkpoint.phenotypes
    chosen = Selection(negative=-0.1)
    listed = [{**phenotype, "selection": asdict(chosen)}]
    other = Predictor(replace(predictor.checkpoint, phenotypes=listed)).on(cousin())
    assert other.remarks[0] == chosen.sentence("epsilon")
    assert other.remarks[1:] == predictor.on(cousin()).remarks
