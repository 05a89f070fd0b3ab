"""Evidence through whole runs: held-out labels change nothing, own measurements do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.datasets import Dataset
from wildtype.errors import ConfigError, GeneSetError, SourceError, UnknownGeneError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.predictor import Predictor, load
from wildtype.mutants import Kind

QUICK = [
    "model.width=16", "model.layers=0", "model.heads=4", "model.head.heads=0", "model.evidence.hidden=8",
    "training.epochs=1", "training.batch_size=64", "training.threads=1", "baselines=[]", "run.progress=false",
    "run.replicates=20", "model.trees.bags=1", "model.trees.iterations=20", "model.trees.leaves=[7]",
    "model.trees.mixing_weight=0.5",
]  # fmt: skip


def run(folder: Path, dataset: Dataset, *words: str) -> Predictor:
    train(compose([*QUICK, f"run.folder={folder}", *words]), dataset=dataset)
    return load(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return run(tmp_path_factory.mktemp("evidence") / "run", tiny_dataset())


def shuffled(dataset: Dataset, parts: list[int], known: np.ndarray) -> Dataset:
    """Shuffle the labels of rows in some parts of a split, as the checkpoint knows them."""
    rows = np.flatnonzero(np.isin(known, parts))
    value = dataset.table.value.copy()
    value[rows] = np.random.default_rng(0).permutation(value[rows])
    return replace(dataset, table=replace(dataset.table, value=value))


@pytest.mark.parametrize("words", [(), ("model.evidence.tokens=0",)], ids=["evidence", "additive alone"])
@pytest.mark.parametrize("split", ["random", "unseen"])
def test_shuffling_held_out_labels_changes_no_prediction(
    tmp_path: Path, split: str, words: tuple[str, ...]
) -> None:
    dataset, words = tiny_dataset(), (f"split.name={split}", *words)
    first = run(tmp_path / "a", dataset, *words)
    known = first.checkpoint.known
    second = run(tmp_path / "b", shuffled(dataset, [1, 2], known.part), *words)
    assert (second.checkpoint.known.table.value != known.table.value).any()
    predicted = [each.checkpoint.predict(known.table) for each in (first, second)]
    assert np.array_equal(*predicted)
    third = run(tmp_path / "c", shuffled(dataset, [0], known.part), *words)
    assert not np.array_equal(predicted[0], third.checkpoint.predict(known.table))


def test_own_measurements_are_evidence(model: Predictor) -> None:
    frame = pd.DataFrame({"genes": ["G000,G002", "G000;abc3"], "value": [0.4, -0.3]})
    wanted = [["G000", "G001"], ["G010", "G011"], ["G000", "G002"]]
    before, after = model.predict(wanted), model.with_evidence(frame).predict(wanted)
    assert after["epsilon"][0] != before["epsilon"][0]
    assert model.predict(wanted)["epsilon"].equals(before["epsilon"])
    assert after["genes_seen"].equals(before["genes_seen"])
    own = frame.assign(value=[9.0, -0.3])
    again = model.with_evidence(own).predict(wanted)
    assert again["epsilon"][2] == after["epsilon"][2]  # a set's own record is never its evidence
    assert again["epsilon"][0] != after["epsilon"][0]
    named = pd.DataFrame({"genes": frame["genes"], "epsilon": frame["value"]})
    assert model.with_evidence(named).predict(wanted)["epsilon"].equals(after["epsilon"])


def test_evidence_that_does_not_fit_is_refused(model: Predictor) -> None:
    genes = ["G000,G002"]
    for columns, error, text in (
        ({"value": [1.0]}, SourceError, "no column 'genes'"),
        ({"genes": genes}, SourceError, "neither a column 'value'"),
        ({"genes": genes, "value": ["high"]}, SourceError, "evidence row 1: value is 'high'"),
        ({"genes": genes, "value": [np.nan]}, SourceError, "no finite number"),
        (
            {"genes": genes, "value": [1e21]},
            SourceError,
            "row 1: epsilon is 1e.21, more than a million standard",
        ),
        ({"genes": genes, "epsilon": [np.nan]}, SourceError, "holds no number"),
        ({"genes": genes, "value": [1.0], "phenotype": ["size"]}, ConfigError, "reads no phenotype 'size'"),
        ({"genes": genes, "value": [1.0], "condition": ["cold"]}, ConfigError, "no condition 'cold'"),
        ({"genes": ["G000,G00"], "value": [1.0]}, UnknownGeneError, "evidence row 1"),
        ({"genes": ["G000,G000"], "value": [1.0]}, GeneSetError, "evidence row 1"),
    ):
        with pytest.raises(error, match=text):
            model.with_evidence(pd.DataFrame(columns))


def test_a_model_without_evidence_says_so(tmp_path: Path) -> None:
    none = ["model.evidence.tokens=0", "model.head.relations=false", "model.head.direct=[sum]"]
    plain = run(tmp_path / "run", tiny_dataset(), *none, "model.head.additive=false")
    with pytest.raises(ConfigError, match="reads no evidence"):
        plain.with_evidence(pd.DataFrame({"genes": ["G000,G002"], "value": [1.0]}))
    assert plain.checkpoint.organism.similarity is None


def test_own_measurements_have_the_kinds_of_their_column(model: Predictor) -> None:
    rows = pd.DataFrame({"genes": ["G002;G000"], "kind": ["overexpressed;reduced"], "value": [1.0]})
    known = model.with_evidence(rows).checkpoint.known.table
    assert (known.gene[-2:].tolist(), known.kind[-2:].tolist()) == (
        [0, 2],
        [Kind.REDUCED, Kind.OVEREXPRESSED],
    )
    with pytest.raises(GeneSetError, match="evidence row 1 states dose '2' in column 'dose'"):
        model.with_evidence(rows.assign(dose="2;"))


def test_predict_takes_a_file_of_evidence(model: Predictor, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    model.checkpoint.save(folder)
    own = tmp_path / "my.csv"
    own.write_text("genes,value\nG000 G002,0.4\n")
    words = ["predict", str(folder), "--set", "G000,G001"]
    plain, told = wildtype(*words), wildtype(*words, "--evidence", str(own))
    assert plain.returncode == told.returncode == 0
    assert plain.stdout != told.stdout
    assert_one_sentence(wildtype(*words, "--evidence", str(tmp_path / "none.csv")), "there is no file")


@pytest.mark.slow
def test_phenotypes_of_lower_orders_are_evidence_too(tmp_path: Path) -> None:
    told = run(tmp_path / "a", tiny_dataset(), "model.evidence.also=[fitness]").checkpoint
    assert told.evidence is not None
    table, known = told.evidence.table, told.known
    held = {tuple(g) for g in known.table.take(np.isin(known.part, [1, 2])).matrix(2).tolist()}
    fitness = table.take(table.phenotype == 1)
    assert (fitness.order == 1).any()
    pairs = fitness.take(fitness.order == 2).matrix(2).tolist()
    assert pairs
    assert not held & {tuple(g) for g in pairs}
    with pytest.raises(ConfigError, match="names 'size'"):
        run(tmp_path / "b", tiny_dataset(), "model.evidence.also=[size]")
    with pytest.raises(ConfigError, match=r"names 'unseen': did you mean seen\? choose"):
        run(tmp_path / "b", tiny_dataset(), "model.evidence.holdout={unseen: 1}")
    assert not (tmp_path / "b").exists()  # found out before anything was written


def test_held_out_genes_are_in_no_evidence(tmp_path: Path) -> None:
    for split in ("unseen", "one-unseen"):
        words = ["model.evidence.also=[fitness]", f"split.name={split}"]
        model = run(tmp_path / split, tiny_dataset(), *words)
        record = json.loads((tmp_path / split / "split.json").read_text())
        held = {gene for part in record["held_out_genes"].values() for gene in part}
        assert held
        evidence = model.checkpoint.evidence
        assert evidence is not None
        assert not held & {model.genes.names[g] for g in evidence.table.gene.tolist()}


@pytest.mark.slow
def test_own_measurements_do_not_rescale_what_was_there(tmp_path: Path) -> None:
    model = run(tmp_path / "run", tiny_dataset(), "model.evidence.also=[fitness]")
    frame = pd.DataFrame({"genes": ["G000,G002", "G003"], "fitness": [20.0, 30.0]})
    before, after = (m.checkpoint.evidence for m in (model, model.with_evidence(frame)))
    assert before is not None
    assert after is not None
    np.testing.assert_array_equal(after.table.value[: len(before.table)], before.table.value)
    assert len(after.table) == len(before.table) + 2


def test_evidence_by_list_number_and_blank(model: Predictor) -> None:
    told = model.with_evidence(pd.DataFrame({"genes": [["G000", "G002"]], "value": [0.4]}))
    text = model.with_evidence(pd.DataFrame({"genes": ["G000,G002"], "value": [0.4]}))
    wanted = [["G000", "G001"]]
    assert told.predict(wanted)["epsilon"].equals(text.predict(wanted)["epsilon"])
    for genes, error in (([np.nan], GeneSetError), ([3], UnknownGeneError)):
        with pytest.raises(error, match="evidence row 1"):
            model.with_evidence(pd.DataFrame({"genes": genes, "value": [1.0]}))


def test_evidence_reaches_mutants_without_the_added_gene(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    model = run(tmp_path / "run", dataset, "model.table=false")
    wider = dataset.organism.add_gene("new1", features={"shape": {"a": 0.5}})
    frame = pd.DataFrame({"genes": ["G000,G002", "new1,G003"], "value": [0.9, -0.7]})
    wanted = [["G000", "G001"], ["new1", "G004"]]
    extended = model.with_genes(wider)
    plain, told = (
        extended.predict(wanted)["epsilon"],
        extended.with_evidence(frame).predict(wanted)["epsilon"],
    )
    assert (plain != told).all()
    base = model.with_evidence(frame[:1]).predict(wanted[:1])["epsilon"]
    assert told[0] == base[0]


@pytest.mark.slow
def test_trees_of_every_member_are_in_the_checkpoint(tmp_path: Path) -> None:
    dataset, pairs = tiny_dataset(), tiny_dataset().table
    words = ["training.members=2", "model.trees.mixing_weight=-1"]
    both = run(tmp_path / "both", dataset, *words).checkpoint
    network = run(tmp_path / "network", dataset, *words, "model.trees.bags=0").checkpoint
    assert [len(m.trees.forests["0"]) for m in both.model.members] == [20, 20]  # type: ignore[union-attr]
    with_trees = both.predict(pairs)
    assert not np.array_equal(with_trees, network.predict(pairs))
    for member in both.model.members:  # type: ignore[union-attr]
        assert 0 < float(member.trees.mixing_weight[0]) < 1
        member.trees.mixing_weight.zero_()
    # Where tokens tie for the last place, few of many are not the few that were looked up alone.
    apart = np.abs(both.predict(pairs) - network.predict(pairs))
    assert np.median(apart) < 1e-6
    assert apart.max() < 1e-2 < np.abs(with_trees - network.predict(pairs)).max()


def test_columns_per_gene_are_for_one_organism(tmp_path: Path) -> None:
    own = run(tmp_path / "run", tiny_dataset(), "model.trees.genes=true", "model.table=false")
    organism = tiny_dataset().organism
    wider = organism.add_gene("NEW1", features={"shape": [0.0, 1.0, 2.0]})
    assert np.isfinite(own.with_genes(wider).predict([["NEW1", "G001"]])["epsilon"]).all()
    with pytest.raises(ConfigError, match=r"model\.trees\.genes=false"):
        own.on(organism)


@pytest.mark.slow
def test_equivalent_mutants_in_silico_are_predicted_exactly(tmp_path: Path) -> None:
    words = ["model.evidence.equivalents=true", "training.epochs=1", "model.trees.bags=0"]
    found = train(compose([*QUICK, *words, f"run.folder={tmp_path / 'run'}"]))
    checkpoint = found.predictor.checkpoint
    test = checkpoint.known.table.take(np.flatnonzero(checkpoint.known.part == 2))
    assert checkpoint.evidence is not None
    known = checkpoint.evidence.tokens_of(test).equivalents.known[:, 0].numpy()
    error = np.abs(checkpoint.predict(test)[:, 0] - test.value)
    assert known.mean() > 0.9
    assert error[known].max() < 1e-4
    assert error[~known].max() > 1e-2
