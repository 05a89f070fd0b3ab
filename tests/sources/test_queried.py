"""Datasets made by a query, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_data_fetch import Run, runner
from tests.sources.user_tables.tables import yeast
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition, Publication, Study
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query, Store, store_path
from wildtype.errors import DatasetError
from wildtype.organism.storage import save_organism
from wildtype.sources import catalogue
from wildtype.sources.catalogue import load_dataset, organism_folder
from wildtype.sources.queried import dataset_from_query

EPSILON = PhenotypeDefinition(name="epsilon", min_order=2)
SQL = "SELECT id FROM measurements WHERE value < 0.15"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    run = runner(tmp_path, monkeypatch, capsys)
    save_organism(yeast(), organism_folder("yeast"))
    study = Study(name="made-up", publication=Publication(citation="Nobody 2026"), organism="yeast")
    genes = yeast().genes
    measurements = Measurements.build(
        study,
        genes=genes.names,
        gene=[[0, 1], [1, 2], [0, 1], [0, 2]],
        value=[0.1, -0.2, 0.3, 0.4],
        phenotypes=[EPSILON],
        replicate=["a", "a", "b", "b"],
    )
    with Store.create(store_path()) as store:
        store.ingest(measurements)
    return run


def test_same_query_same_store_same_dataset(run: Run) -> None:
    organism = yeast()
    with Store.open(store_path(), read_only=True) as store:
        first, known = dataset_from_query("mine", Query().value(max=0.15), store, organism, Policies())
        again, known_again = dataset_from_query("mine", Query().value(max=0.15), store, organism, Policies())
        other, _ = dataset_from_query("mine", Query().value(max=0.35), store, organism, Policies())
    assert (known, known_again) == (False, True)
    assert first.sha256 == again.sha256 != other.sha256
    assert sorted(first.table.value.tolist()) == pytest.approx([-0.2, 0.1])
    assert load_dataset("mine").sha256 == other.sha256


def test_studies_of_one_provenance_group_are_one_replicate(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    organism, genes = yeast(), yeast().genes
    later = Study(name="later", publication=Publication(citation="Nobody 2027"), organism="yeast")
    pairs = [[0, 1], [1, 2], [0, 3]]
    with Store.open(store_path()) as store:
        store.ingest(
            Measurements.build(
                later, genes=genes.names, gene=pairs, value=[0.5, 0.6, 0.7], phenotypes=[EPSILON]
            )
        )
    everything, pooled = Query(), Policies(replicates="inverse variance")
    with Store.open(store_path(), read_only=True) as store:
        alone, _ = dataset_from_query("mine", everything, store, organism, pooled)
        monkeypatch.setattr(catalogue, "PROVENANCE", {"lab": ("later", "made-up")})
        grouped, known = dataset_from_query("mine", everything, store, organism, pooled)
        apart, _ = dataset_from_query("apart", everything, store, organism, Policies(studies="apart"))
    assert not known
    # Three numbers of genes 0 and 1 before; the one of the group's first study after. 0 and 2 has no other.
    values = [dict(zip(one.table.sets(), one.table.value.tolist(), strict=True)) for one in (alone, grouped)]
    assert values[0][(0, 1)] == pytest.approx((0.1 + 0.3 + 0.5) / 3)
    assert values[1] == pytest.approx({(0, 1): 0.5, (1, 2): 0.6, (0, 2): 0.4, (0, 3): 0.7})
    (report,) = (one for one in grouped.stages if one.step == "provenance")
    assert report.merged == {"mutant that the first study of the provenance group has measured": 3}
    assert "(3 copies left out)" in grouped.noise
    assert alone.provenance == {}
    # Apart, both stay, and the dataset knows that they are one measurement; so does the one that is loaded.
    assert len(apart) == 3 + 3
    for dataset in (apart, grouped, load_dataset("apart")):
        assert dataset.provenance == {"lab": ("later", "made-up")}
        assert dataset.card()["provenance"] == {"lab": ("later", "made-up")}


def test_the_command_makes_a_dataset(run: Run) -> None:
    said = run("query", SQL, "--dataset", "mine", "--json")
    assert said.code == 0, said.err
    card = json.loads(said.out)
    assert (card["rows"], card["from_cache"]) == (2, False)
    assert f"made by a query: {SQL}" in card["notes"]
    assert json.loads(run("query", SQL, "--dataset", "mine", "--json").out)["from_cache"] is True
    assert any(row["dataset"] == "mine" for row in json.loads(run("list", "--json").out))
    apart = run(
        "query",
        "SELECT id FROM measurements",
        "--dataset",
        "apart",
        "--policy",
        "replicates=apart",
        "--policy",
        "alleles=apart",
        "--json",
    )
    assert json.loads(apart.out)["rows"] == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SELECT value FROM measurements", "--dataset", "mine"], "id"),
        ([SQL, "--dataset", "yeast-trigenic-kuzmin"], "is the name of another dataset"),
        ([SQL, "--dataset", "../mine"], "cannot be the name of a dataset"),
        ([SQL, "--dataset", "mine", "--policy", "alleles"], "write name=setting"),
        ([SQL, "--dataset", "mine", "--policy", "colour=red"], "no policy 'colour'"),
        (["SELECT id FROM measurements WHERE value > 9", "--dataset", "mine"], "gives no measurements"),
        ([SQL, "--dataset", "mine", "--organism", "mouse"], "no organism 'mouse'"),
    ],
)
def test_wrong_questions_are_one_sentence(run: Run, words: list[str], message: str) -> None:
    said = run("query", *words)
    assert said.code == 1
    assert message in said.err
    assert said.err.count("\n") == 1
    with pytest.raises(DatasetError):
        load_dataset("mine")
