"""Genes of the organism that are no tokens of a model: they can be asked about, and change nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.errors import ConfigError, UnknownGeneError
from wildtype.experiments.explain import open_run
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.explaining.explain import ExplanationRequest, explain
from wildtype.inference.predictor import Predictor
from wildtype.models.cell_transformer.config import CellTransformerConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.checkpoint import load_checkpoint
from wildtype.models.interface import OrganismTensors
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.perturbation_head import perturbation_attention, perturbation_attention_reference
from wildtype.report.serving.answers import Answers

MEASURED = 18
"""Genes of the 24 that any row perturbs."""
WORDS = (
    "model.width=16", "model.heads=4", "model.layers=2", "model.head.heads=2", "training.epochs=1",
    "training.batch_size=64", "baselines=[]", "run.progress=false", "run.replicates=10",
    "data.name=tiny-growth", "data.tokens=measured", "model.evidence.tokens=8", "model.evidence.two=4",
)  # fmt: skip
SETS = [["G001", "G002"], ["abc4", "G005"], ["G010", "G017"]]
OTHER = [["G001", "G020"], ["G021", "abc22"]]


def partly_measured() -> Dataset:
    """The tiny dataset without any row of its last six genes, which are in the middle of its index."""
    dataset = tiny_dataset()
    order = np.concatenate([np.arange(6), np.arange(18, 24), np.arange(6, 18)])
    dataset = dataset.restrict_genes(order)
    unmeasured = np.zeros(24, bool)
    unmeasured[6:12] = True
    table = dataset.table
    return replace(dataset, table=table.take(~table.holding(unmeasured[table.gene])))


def trained(folder: Path, *words: str) -> Path:
    train(compose([*WORDS, f"run.folder={folder}", *words]), dataset=partly_measured())
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "no-table", "model.table=false")


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return wt.load(run)


def test_every_gene_of_the_organism_can_be_asked_about(predictor: Predictor) -> None:
    assert len(predictor.genes) == 24
    assert len(predictor.encoded.genes) == MEASURED
    frame = predictor.predict([*SETS, *OTHER])
    assert np.isfinite(frame["epsilon"]).all()
    assert frame["genes_seen"].tolist() == [2, 2, 2, 1, 0]
    assert frame["note"].iloc[0] == ""
    assert frame["note"].iloc[3] == "not measured, known by features, relations and evidence: G020"
    assert predictor.predict([["G020", "G023"]])["kinds"].tolist() == ["absent,reduced"]  # G023 is essential


def test_mutants_of_tokens_are_answered_to_the_bit(predictor: Predictor) -> None:
    alone = predictor.encoded.predict(SETS)
    mixed = predictor.predict([*OTHER, *SETS]).iloc[2:].reset_index(drop=True)
    assert mixed.equals(alone)
    one, both = predictor.predict(OTHER[:1]), predictor.predict(OTHER)
    np.testing.assert_allclose(one["epsilon"][0], both["epsilon"][0], atol=1e-6)


def test_features_of_other_genes_count(run: Path, predictor: Predictor) -> None:
    checkpoint = load_checkpoint(run)
    others = checkpoint.others
    assert others is not None
    assert others.organism is not None
    features = others.organism.features.clone()
    features[others.genes.find("G020")] += 1
    other = Predictor(
        replace(checkpoint, others=replace(others, organism=replace(others.organism, features=features)))
    )
    before, after = (one.predict([*OTHER, *SETS])["epsilon"].to_numpy() for one in (predictor, other))
    assert before[0] != after[0]
    np.testing.assert_array_equal(before[1:], after[1:])


def test_features_of_other_genes_are_scaled_as_in_training(run: Path) -> None:
    checkpoint, dataset = load_checkpoint(run), partly_measured()
    others = checkpoint.others
    assert others is not None
    assert others.organism is not None
    names = [name for block in checkpoint.features.blocks for name in block.inputs]  # type: ignore[union-attr]
    organism = dataset.organism
    tokens = checkpoint.genes.mapping_to(organism.genes)
    column = organism.features["shape"].values[:, 0].astype(np.float64)
    expected = (column - column[tokens].mean()) / column[tokens].std()
    place = others.genes.mapping_to(organism.genes)
    at = names.index("shape.a") if "shape.a" in names else 0
    np.testing.assert_allclose(others.organism.features[:, at], expected[place], rtol=1e-4, atol=1e-5)
    assert torch.equal(others.organism.features[:MEASURED], checkpoint.organism.features)
    # The fitness of a single mutant that no row has is an input as that of any other.
    fitness = np.asarray(dataset.single_fitness)[place[MEASURED:]]
    np.testing.assert_array_equal(others.single_fitness, fitness)
    assert (others.organism.features[MEASURED:, -1] != 0).all()


def test_a_table_is_extended_by_its_mean_and_an_embedding_alone_is_refused(tmp_path: Path) -> None:
    both = wt.load(trained(tmp_path / "table"))
    assert np.isfinite(both.predict(OTHER)["epsilon"]).all()
    assert "with the mean learned embedding: G020" in both.predict(OTHER)["note"][0]
    only = wt.load(trained(tmp_path / "only", "model.features=false"))
    assert np.isfinite(only.predict(SETS)["epsilon"]).all()
    said = r"row 1: abc20 \(G020\) is one of the 24 genes .* given 18 of them.*data\.tokens=all"
    with pytest.raises(ConfigError, match=said):
        only.predict(OTHER)
    for one in (both, only):
        with pytest.raises(UnknownGeneError, match=r"'G02O' is not in organism 'tiny' \(24 genes\)"):
            one.predict([["G02O"]])
    assert len(only.screen(2, top=3)) == 6  # of the genes that it knows


@pytest.mark.slow
def test_screens_have_all_genes_and_the_predictions_of_predict(predictor: Predictor, run: Path) -> None:
    found = predictor.screen(2, top=300, direction="low")
    assert found.attrs["count"] == 24 * 23 / 2
    again = predictor.predict([genes.split(",") for genes in found["genes"]])
    np.testing.assert_allclose(found["epsilon"], again["epsilon"], atol=1e-6)
    assert predictor.screen(2, top=5, processes=2)["genes"].equals(predictor.screen(2, top=5)["genes"])


@pytest.mark.parametrize("summary", ["sum", "own_reads"])
def test_fast_screens_equal_slow_ones(tmp_path: Path, summary: str) -> None:
    words = ["model.evidence.tokens=0", "model.table=false", f"model.head.summary={summary}"]
    own = wt.load(trained(tmp_path / "run", *words))
    among = [f"G{i:03d}" for i in (0, 1, 2, 19, 20, 21)]
    table = own.table([[a, b] for i, a in enumerate(among) for b in among[i + 1 :]])
    gene = np.unique(table.gene)
    fast = own.core.combinations(gene, own.kinds[gene], 2)
    if summary == "own_reads":
        assert fast is None
        return
    assert fast is not None
    members = np.searchsorted(gene, table.matrix(2))
    np.testing.assert_allclose(fast(members), own.core.predict_with_sd(table)[0], atol=1e-5)


def test_serve_explain_and_evidence_follow(predictor: Predictor, run: Path) -> None:
    answers = Answers(predictor, "tiny")
    assert answers.model()["genes"] == 24
    assert answers.complete("abc20")["genes"]
    mutants = answers.predict({"sets": [["G001", "abc20"], []]})["mutants"]
    assert np.isfinite(mutants[0]["predictions"][0]["value"])
    assert "the wild type" in mutants[1]["note"]
    for request in ({"sets": [["G001", "abc20"]]}, {"sets": [[]]}):
        assert "mutants" in answers.nearest(request)
        answers.neighbourhood(request)
    asked = ExplanationRequest(sections=("mutants",), sets=(("G001", "G020"), ("G001", "G002")))
    found = explain([open_run(run, partly_measured().organism)], asked, lambda run: [])
    frame = predictor.predict([["G001", "G020"], ["G001", "G002"]])
    for mutant, value in zip(found.mutants, frame["epsilon"], strict=True):
        assert mutant.predicted.mean == pytest.approx(value, abs=1e-5)
        assert abs(mutant.error) < 1e-3
    import pandas as pd

    told = predictor.with_evidence(pd.DataFrame({"genes": ["G001,G020", "G001,G003"], "value": [0.9, 0.5]}))
    changed = told.predict([["G002", "G020"], ["G001", "G005"]])["epsilon"]
    assert (changed != predictor.predict([["G002", "G020"], ["G001", "G005"]])["epsilon"]).all()


def test_foreign_genes_come_behind_other_genes(predictor: Predictor) -> None:
    organism = partly_measured().organism
    wider = organism.add_gene("NEW1", features={"shape": [0.5, -1.0, 2.0]}).add_gene("NEW2")
    own = predictor.with_genes(wider)
    assert len(own.genes) == 26
    frame = own.predict([["NEW1", "G020"], *OTHER, *SETS])
    assert frame["kinds"][0].split(",")[1] == "added"
    assert np.isfinite(frame["epsilon"]).all()
    assert frame.iloc[1:].reset_index(drop=True).equals(predictor.predict([*OTHER, *SETS]))
    # A second candidate changes nothing of the first.
    alone = predictor.with_genes(organism.add_gene("NEW1", features={"shape": [0.5, -1.0, 2.0]}))
    first, both = (one.checkpoint.encode().genes for one in (alone, own))
    torch.testing.assert_close(first, both[:25], rtol=0, atol=1e-6)


def test_other_genes_survive_saving_and_old_checkpoints_have_none(run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(run)
    checkpoint.save(tmp_path / "again")
    first, second = (wt.load(path).predict([*OTHER, *SETS]) for path in (run, tmp_path / "again"))
    assert first.equals(second)
    replace(checkpoint, others=None).save(tmp_path / "without")
    assert len(wt.load(tmp_path / "without").genes) == MEASURED


def test_pair_screen_answers_about_genes_outside_its_screen(tmp_path: Path) -> None:
    words = [word for word in WORDS if not word.startswith("model.")]
    words += [f"run.folder={tmp_path / 'run'}", "model=pair_screen", "model.iterations=5", "model.bags=1",
              "model.folds=2", "model.gene_folds=2", "model.least_rows=2"]  # fmt: skip
    train(compose(words), dataset=partly_measured())
    own = wt.load(tmp_path / "run")
    assert len(own.genes) == 24
    frame = own.predict([*OTHER, ["G001", "G002"], ["G001"], []])
    assert np.isfinite(frame["epsilon"][:3]).all()
    assert "without a visible cross: G020" in frame["note"][0]
    assert frame["note"][2] == ""
    assert np.isnan(frame["epsilon"][3:]).all()
    assert "scores mutants of 2 genes" in frame["note"][3]
    assert "epsilon needs at least 2 genes" in frame["note"][4]


def encoded_with(genes: Sequence[int], features: torch.Tensor, encoded: int) -> torch.Tensor:
    """States of the genes that are read beside the tokens, each encoded alone, by the plain layers."""
    config = CellTransformerConfig(width=16, heads=4, layers=1, table=False)
    torch.manual_seed(0)
    model = CellTransformer(config, genes=encoded, features=3, phenotypes=1).double().eval()
    if not genes:
        return model.encode(OrganismTensors(features, encoded=encoded)).genes[encoded:]
    # One layer: a gene as one more token sees the tokens' inputs and its own, as the definition says.
    rows = [*range(encoded), *genes]
    return model.encode(OrganismTensors(features[rows])).genes[encoded:]


def test_a_gene_beside_the_tokens_is_as_one_more_token_of_one_layer() -> None:
    features = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ours = encoded_with([], features, 6)
    for i, gene in enumerate((6, 7, 8)):
        torch.testing.assert_close(ours[i : i + 1], encoded_with([gene], features, 6), rtol=1e-10, atol=1e-12)


def test_no_token_attends_to_a_gene_beside_them() -> None:
    config = CellTransformerConfig(width=16, heads=4, layers=2, table=True)
    torch.manual_seed(0)
    model = CellTransformer(config, genes=6, features=3, phenotypes=2).double().eval()
    features = torch.randn(9, 3, dtype=torch.float64)
    alone = model.encode(OrganismTensors(features[:6]))
    wider = model.encode(OrganismTensors(features, encoded=6))
    batch = MutantBatch.from_table(MutantTable.from_sets([[0, 1], [3]]))
    # Products of 6 and of 9 rows may round differently.
    close = {"rtol": 1e-12, "atol": 1e-13}
    torch.testing.assert_close(alone.genes, wider.genes[:6], **close)
    torch.testing.assert_close(alone.cls, wider.cls, **close)
    torch.testing.assert_close(model(alone, batch).mean, model(wider, batch).mean, **close)


def test_attention_to_own_genes_beside_shared_ones_equals_its_definition() -> None:
    draw = torch.Generator().manual_seed(0)
    f64 = torch.float64
    query, keys = (torch.randn(n, 5, dtype=f64, generator=draw) for n in (4, 8))
    query[3] *= 300  # logits far above those of the shared genes must not overflow
    values = torch.randn(8, 3, dtype=f64, generator=draw)
    sets = [[0, 6], [5], [], [6, 7, 1]]
    gene, offsets = torch.tensor([g for members in sets for g in members]), torch.tensor([0, 2, 3, 3, 6])
    delta = torch.randn(6, 3, dtype=f64, generator=draw)
    ours = perturbation_attention(query, keys, values, gene, offsets, delta, shared=6)
    start = 0
    for row, members in enumerate(sets):
        among = sorted({*range(6), *members})
        place = torch.tensor([among.index(g) for g in members], dtype=torch.int64)
        plain = perturbation_attention_reference(
            query[row : row + 1], keys[among], values[among], place, torch.tensor([0, len(members)]),
            delta[start : start + len(members)],
        )  # fmt: skip
        torch.testing.assert_close(ours[row : row + 1], plain, rtol=1e-9, atol=1e-11)
        start += len(members)


def test_the_wild_type_is_a_question(tmp_path: Path, predictor: Predictor) -> None:
    frame = predictor.predict([[], ["G001"], ["G001", "G002"]], as_="fitness", interval=0.8)
    assert np.isnan(frame["epsilon"][0])
    assert "the wild type" in frame["note"][0]
    assert "epsilon needs at least 2 genes" in frame["note"][0]
    assert "no interval" not in frame["note"][0]
    assert (frame["fitness_expected"][0], frame["fitness_expected_sd"][0]) == (1.0, 0.0)
    assert "epsilon needs at least 2 genes" in frame["note"][1]
    own = wt.load(trained(tmp_path / "run", "data.phenotypes=[fitness]", "model.table=false"))
    frame = own.predict([["G001"], []], interval=0.8)
    assert frame["fitness"][1] == 1.0
    assert (frame["fitness_low"][1], frame["fitness_high"][1]) == (1.0, 1.0)
    assert frame["genes"][1] == ""
