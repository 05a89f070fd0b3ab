"""Runs are explained with the organism they were trained on, whatever their models lack."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.inference.explaining.models import checkpoint_of, model_like, opened, pair_of
from tests.tiny import tiny_organism
from wildtype.errors import ConfigError, UnknownGeneError
from wildtype.experiments.explain import explain_runs, open_run
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.stored import Run
from wildtype.files import finite
from wildtype.inference.explaining.explain import ONE_MODEL, Explanation, ExplanationRequest, explain
from wildtype.inference.explaining.members import members_of
from wildtype.inference.predictor import Predictor
from wildtype.models.cell_transformer.config import (
    CellTransformerConfig,
    EvidenceConfig,
    HeadConfig,
    PriorConfig,
)
from wildtype.organism import Relation
from wildtype.organism.controls import choose_relations
from wildtype.organism.relations import GeneGraphs

QUICK = ExplanationRequest(sets=[["G003", "abc5"]], mutants=40, graphs=2, exchanges=20, top=3)


@pytest.fixture(scope="module")
def explained(tiny_run: Path) -> Explanation:
    return explain_runs([tiny_run, tiny_run], QUICK, organism=tiny_organism())


def test_every_section_of_a_run_is_there(explained: Explanation) -> None:
    assert explained.models == ("1", "2")
    assert [head.relation for head in explained.heads] == ["physical", "regulatory"]
    assert {head.head for head in explained.free} == {2, 3}
    assert explained.latents is not None
    (mutant,) = explained.mutants
    assert mutant.genes == ("G003", "G005")
    assert not explained.remarks


def test_one_model_twice_agrees_with_itself(tiny_run: Path, explained: Explanation) -> None:
    assert all(head.average_precision.found.sd == 0 for head in explained.heads)
    assert {claim.found_in for claim in explained.layers} <= {0, 2}
    (mutant,) = explained.mutants
    assert mutant.cell_agrees == pytest.approx(1)
    assert mutant.predicted.sd == 0
    assert all(token.found_in == 2 for token in mutant.tokens)
    predicted = Run(tiny_run).predictor.predict([["G003", "G005"]])
    assert mutant.predicted.mean == pytest.approx(predicted["epsilon"].iloc[0], abs=1e-6)
    assert mutant.measured == pytest.approx(predicted["epsilon_measured"].iloc[0])


def test_the_record_is_plain(explained: Explanation) -> None:
    record = json.loads(json.dumps(finite(explained.to_json()), allow_nan=False))
    assert record["format"] == 1
    assert record["agreement"] == "over models"
    assert len(record["heads"][0]["average_precision"]["found"]["each"]) == 2
    assert set(record["mutants"][0]["parts"][0]["integrated"]) == {"mean", "sd", "each"}


def test_one_model_says_that_no_agreement_is_known(tiny_run: Path) -> None:
    asked = replace(QUICK, sections=["mutants"])
    found = explain_runs([tiny_run], asked, organism=tiny_organism())
    assert found.remarks["general"] == (ONE_MODEL,)
    assert found.to_json()["agreement"] == ONE_MODEL
    assert np.isnan(found.mutants[0].predicted.sd)
    assert np.isnan(found.mutants[0].cell_agrees)


def test_members_of_an_ensemble_count_as_models(tiny_run: Path) -> None:
    config = CellTransformerConfig(width=16, layers=1, heads=4, head=HeadConfig(heads=2))
    run = pair_of(tiny_run, config)
    found = explain([run], QUICK)
    assert found.models == ("1.1", "1.2")
    (mutant,) = found.mutants
    assert mutant.predicted.sd > 0
    assert -1 <= mutant.cell_agrees < 1
    expected = run.predictor.predict([["G003", "G005"]])["epsilon"].iloc[0]
    assert mutant.predicted.mean == pytest.approx(expected, abs=1e-6)


SMALL = CellTransformerConfig(width=16, layers=1, heads=4, head=HeadConfig(heads=2))
LESS = {
    "heads=0": (replace(SMALL, head=HeadConfig(heads=0)), "latents", "no whole-cell latent"),
    "layers=0": (replace(SMALL, layers=0), "heads", "no encoder layers"),
    "weight=0": (replace(SMALL, prior=PriorConfig(weight=0)), "heads", "no head follows a relation"),
    "tokens=0": (replace(SMALL, evidence=EvidenceConfig(tokens=0)), "mutants", "reads no measurements"),
}


@pytest.mark.parametrize("case", list(LESS))
def test_what_a_model_lacks_is_said(tiny_run: Path, case: str) -> None:
    config, section, needle = LESS[case]
    run = opened(tiny_run, model_like(tiny_run, config))
    found = explain([run], QUICK)
    said = found.mutants[0].notes if section == "mutants" else found.remarks[section]
    assert any(needle in text for text in said)
    assert (not found.heads) == (section == "heads")
    assert (found.latents is None) == (case == "heads=0")
    assert found.mutants[0].parts


def test_of_a_class_the_logit_is_explained(tiny_run: Path) -> None:
    own = checkpoint_of(tiny_run)
    called = replace(own, phenotypes=[{**own.phenotypes[0], "form": "class"}])
    run = replace(opened(tiny_run), predictor=Predictor(called))
    (mutant,) = explain([run], replace(QUICK, sections=["mutants"])).mutants
    assert mutant.unit == "logit"
    predicted = run.predictor.predict([["G003", "G005"]])["epsilon"].iloc[0]
    assert 1 / (1 + np.exp(-mutant.predicted.mean)) == pytest.approx(predicted, abs=1e-6)


def test_runs_of_other_models_are_refused(tiny_run: Path) -> None:
    one = opened(tiny_run)
    other = opened(tiny_run, model_like(tiny_run, replace(SMALL, layers=0)))
    with pytest.raises(ConfigError, match="other settings of the model"):
        members_of([one, other])
    with pytest.raises(ConfigError, match="nothing to explain"):
        members_of([])


def test_without_its_organism_a_run_is_explained_as_far_as_it_goes(tiny_run: Path) -> None:
    found = explain_runs([tiny_run], QUICK)
    assert not found.heads
    assert not found.free
    assert found.latents is not None
    assert "'tiny-growth' is not in the catalogue" in found.remarks["general"][0]
    assert found.remarks["heads"] == found.remarks["free"] == ("the gene graphs are not available",)
    assert "give the run directory" in open_run(_checkpoint_alone(tiny_run)).remarks[0]


def _checkpoint_alone(run: Path) -> Path:
    import shutil

    return Path(shutil.copytree(run / "checkpoint", run.parent / "alone" / "checkpoint", dirs_exist_ok=True))


def test_an_organism_that_has_changed_is_not_taken_for_the_old_one(tiny_run: Path) -> None:
    organism = tiny_organism()
    extra = Relation.from_edges("physical", [0], [1], 24, directed=False)
    changed = replace(organism, graphs=GeneGraphs([extra, organism.graphs["regulatory"]]))
    opened = open_run(tiny_run, changed)
    assert opened.organism is None
    assert "are not those that the run was trained on" in opened.remarks[0]
    fewer = organism.restrict(np.arange(20))
    assert "it lacks 4 of the run's genes" in open_run(tiny_run, fewer).remarks[0]


def test_genes_in_another_order_are_put_in_that_of_the_run(tiny_run: Path) -> None:
    organism = tiny_organism()
    turned = organism.restrict(np.arange(24)[::-1].copy())
    opened = open_run(tiny_run, turned)
    assert opened.organism is not None
    assert opened.organism.genes == opened.predictor.genes
    assert opened.organism.graphs.sha256 == organism.graphs.sha256


def test_relations_that_were_left_out_of_the_run_are_left_out(tiny_run: Path, tmp_path: Path) -> None:
    import shutil

    run = shutil.copytree(tiny_run, tmp_path / "run")
    settings = json.loads((run / "settings.json").read_text())
    settings["settings"]["data"]["without"] = ["regulatory"]
    (run / "settings.json").write_text(json.dumps(settings))
    record = json.loads((run / "record.json").read_text())
    left = choose_relations(tiny_organism(), without=["regulatory"])
    record["organism"]["graphs_sha256"] = left.graphs.sha256
    (run / "record.json").write_text(json.dumps(record))
    opened = open_run(run, tiny_organism())
    assert opened.organism is not None
    assert list(opened.organism.graphs) == ["physical"]


@pytest.mark.parametrize(
    ("asked", "error", "needle"),
    [
        (replace(QUICK, phenotype="nope"), ConfigError, "'nope'"),
        (replace(QUICK, condition="heat"), ConfigError, "heat"),
        (replace(QUICK, sets=[["G003"], ["NOPE"]]), UnknownGeneError, "row 2"),
    ],
)
def test_bad_requests_are_refused_before_any_work(
    tiny_run: Path, asked: ExplanationRequest, error: type[Exception], needle: str
) -> None:
    with pytest.raises(error, match=needle):
        explain([opened(tiny_run)], asked, report_progress=lambda text: pytest.fail(text))


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ConfigError, match="no section 'head'"):
        ExplanationRequest(sections=["head"])
    with pytest.raises(ConfigError, match="exchanges=1"):
        ExplanationRequest(exchanges=1)


@pytest.mark.slow
def test_priors_that_were_trained_are_recovered(tmp_path: Path) -> None:
    """On the core metabolism of E. coli, whose relations are read off its gene rules."""
    # Half of the epochs recover them by .46 to .50, and a seed decides on which side of .5.
    words = ["data=ecoli-core-growth", "data.rows=1000", "model.layers=1", "model.heads=8",
             "model.prior.weight=1", "model.head.heads=2", "training.epochs=16", "baselines=[]",
             "run.progress=false", "run.replicates=10", "model.trees.bags=0",
             f"run.folder={tmp_path / 'run'}"]  # fmt: skip
    train(compose(words))
    found = explain_runs(
        [tmp_path / "run"], ExplanationRequest(sets=[["b0116", "b3731"]], mutants=100, top=3)
    )
    assert [head.relation for head in found.heads] == [
        "reaction",
        "complex",
        "isozyme",
        "backup",
        "metabolite",
        "consecutive",
    ]
    for head in found.heads:
        measure = head.average_precision
        assert measure.found.mean > measure.random_mean + 5 * measure.random_sd, head.relation
    assert found.heads[0].average_precision.found.mean > 0.5
    assert {claim.kind for claim in found.layers} >= {"relation"}
    assert found.latents is not None
    (mutant,) = found.mutants
    assert sum(part.integrated.mean for part in mutant.parts) == pytest.approx(
        mutant.network.mean - mutant.baseline.mean, abs=1e-6
    )
    assert not found.remarks.keys() - {"general"}
