from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wildtype as wt
from wildtype.errors import CheckpointError
from wildtype.inference.predictor import Predictor
from wildtype.mutants.selection import Selection
from wildtype.report.serving.answers import Answers

STORED = Path(__file__).parents[2] / "models" / "stored"


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


def like(predictor: Predictor, **fields: Any) -> Answers:
    return Answers(Predictor(replace(predictor.checkpoint, **fields)), "like")


@pytest.mark.parametrize("path", sorted(STORED.glob("format-*/")), ids=lambda path: path.name)
def test_every_format_of_checkpoint_is_answered_from(path: Path) -> None:
    answers = Answers(wt.load(path), path.name)
    answers.wake()
    model = answers.model()
    request = {"sets": [model["examples"][0]["line"].split(",")], "condition": model["conditions"][-1]}
    (mutant,) = answers.predict(request)["mutants"]
    assert len(mutant["predictions"]) == len(model["phenotypes"])
    assert answers.nearest(request)["mutants"][0]["how"] == "the same genes"
    assert answers.neighbourhood(request)["perturbed"] == len(mutant["genes"])


def test_a_number_per_gene_is_no_column(predictor: Predictor) -> None:
    answers = like(predictor, phenotypes=[{**predictor.checkpoint.phenotypes[0], "form": "gene"}])
    model = answers.model()
    assert (model["phenotypes"], model["per_gene"]) == ([], ["epsilon"])
    assert len(model["examples"]) == 3
    (mutant,) = answers.predict({"sets": [["G001", "G002"]]})["mutants"]
    assert mutant["predictions"] == []


def test_a_checkpoint_without_intervals_says_so_where_one_is_asked_for(predictor: Predictor) -> None:
    answers = like(predictor, validation=None)
    answers.wake()
    assert answers.model()["intervals"] is False
    assert answers.predict({"sets": [["G001", "G002"]]})["mutants"][0]["predictions"][0]["value"]
    with pytest.raises(CheckpointError, match="validation"):
        answers.predict({"sets": [["G001", "G002"]], "interval": 0.9})


def test_nothing_measured_is_no_obstacle(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    none = replace(known, table=known.table.take([]), part=known.part[:0])
    answers = like(predictor, known=none)
    model = answers.model()
    assert model["examples"] == []
    assert [p["sd"] for p in model["known"]] == [None, None]
    assert answers.nearest({"sets": [["G001", "G002"]]}) == {"mutants": [], "reads_evidence": False}
    assert answers.predict({"sets": [["G001"]]})["mutants"][0]["genes_seen"] == 0


def test_examples_are_written_as_they_are_read(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    kind = np.where(known.table.gene == 7, 4, known.table.kind).astype(np.uint8)
    value = np.where((known.table.gene[known.table.offsets[:-1]] == 7) & (known.table.order == 2), 9.0, 0.0)
    table = replace(known.table, kind=kind, value=value.astype(np.float32))
    answers = like(predictor, known=replace(known, table=table))
    for example in answers.model()["examples"]:
        (read,) = answers.read({"lines": [example["line"]]})["sets"]
        assert read["genes"][0]["name"] == "G007"
        assert read["genes"][0]["kind"] == "overexpressed"
        assert example["shown"].startswith("abc7 ")


def test_own_measurements_are_told_apart(predictor: Predictor) -> None:
    import pandas as pd

    own = predictor.with_evidence(pd.DataFrame({"genes": ["G001,G002,G003"], "value": [0.5]}))
    near = Answers(own, "own").nearest({"sets": [["G001", "G002", "G003"]]})["mutants"]
    assert near[0]["values"]["epsilon"] == {"value": 0.5, "count": 1, "parts": ("given",)}


def test_a_run_of_a_list_says_so_at_the_top_and_beside_every_mutant(predictor: Predictor) -> None:
    chosen = Selection(negative=-0.1)
    answers = like(
        predictor, phenotypes=[{**predictor.checkpoint.phenotypes[0], "selection": asdict(chosen)}]
    )
    assert answers.model()["remarks"] == [chosen.sentence("epsilon")]
    (mutant,) = answers.predict({"sets": [["G001", "G002"]]})["mutants"]
    assert mutant["note"] == chosen.sentence("epsilon")


def test_a_dose_that_the_page_would_not_show_is_refused(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    dosed = replace(known.table, dose=np.ones(len(known.table.gene), np.float32))
    answers = like(predictor, known=replace(known, table=dosed))
    (read, plain) = answers.read({"lines": ["G001:overexpressed@4", "G001:overexpressed"]})["sets"]
    assert read["error"] == "it has a dose, which this page does not show: use `wildtype predict`"
    assert plain["genes"][0]["kind"] == "overexpressed"
