from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import wildtype as wt
from tests.tiny import tiny_dataset
from wildtype.evidence.reference import PARTS
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.predictor import Predictor
from wildtype.mutants import MutantTable
from wildtype.report.serving.nearest import ORDER, Measured, nearest


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


def by_how(found: list[Measured]) -> dict[str, list[Measured]]:
    return {how: [one for one in found if one.edit.how == how] for how in ORDER}


def test_values_are_those_of_the_data(predictor: Predictor) -> None:
    found = nearest(predictor.checkpoint, predictor.table([["G003", "G005"]]))
    table = tiny_dataset().table
    values = dict(zip(zip(table.sets(), table.phenotype.tolist(), strict=True), table.value, strict=True))
    assert len(found) > 6
    for one in found:
        assert set(one.values) == {"fitness", "epsilon"}
        for p, name in enumerate(("fitness", "epsilon")):
            assert one.values[name].value == pytest.approx(float(values[one.edit.genes, p]))
            assert one.values[name].count == 1
    known = predictor.checkpoint.known
    parts = dict(
        zip(zip(known.table.sets(), known.table.phenotype.tolist(), strict=True), known.part, strict=True)
    )
    for one in found:
        assert one.values["epsilon"].parts == (PARTS[parts[one.edit.genes, 1]],)


def test_a_mutant_comes_first_and_edits_say_what_they_are(predictor: Predictor) -> None:
    found = nearest(predictor.checkpoint, predictor.table([["G003", "G005"]]), shown=3)
    assert [one.edit.how for one in found] == sorted([one.edit.how for one in found], key=ORDER.index)
    groups = by_how(found)
    assert [one.edit.genes for one in groups["the same genes"]] == [(3, 5)]
    assert 0 < len(groups["replaced"]) <= 3
    assert 0 < len(groups["two replaced"]) <= 3
    for one in found:
        lost, gained = {3, 5} - set(one.edit.genes), set(one.edit.genes) - {3, 5}
        assert (set(one.edit.old), set(one.edit.new)) == (lost, gained)
        assert np.isfinite(one.likeness) == bool(lost)
    alike = predictor.checkpoint.organism.similarity
    assert alike is not None
    (old,), (new,) = groups["replaced"][0].edit.old, groups["replaced"][0].edit.new
    assert groups["replaced"][0].likeness == pytest.approx(float(alike.unit[old] @ alike.unit[new]))


def test_replaced_genes_are_those_that_the_model_looks_up(predictor: Predictor) -> None:
    table = predictor.table([["G001", "G002", "G003"]])
    index = predictor.checkpoint.evidence
    assert index is not None
    tokens = index.tokens_of(table)
    read = {
        frozenset({1, 2, 3} - {old})
        for old, there in zip(tokens.one.old[0].tolist(), tokens.one.mask[0].tolist(), strict=True)
        if there
    }
    found = by_how(nearest(predictor.checkpoint, table))
    assert {frozenset(one.edit.genes) for one in found["removed"]} == read
    assert found["the same genes"] == []


def test_a_model_without_evidence_finds_sets_that_share_genes(tmp_path: Path) -> None:
    words = ["model=dango", "model.width=8", "training.epochs=1", "baselines=[]", "run.progress=false"]
    words += ["data.name=tiny-growth", "run.replicates=5", f"run.folder={tmp_path / 'run'}"]
    checkpoint = train(compose(words), dataset=tiny_dataset()).predictor.checkpoint
    assert checkpoint.evidence is None
    known = checkpoint.known
    names = checkpoint.genes.names
    pair = next(genes for genes in known.table.sets() if len(genes) == 2)
    predictor = Predictor(checkpoint)
    found = by_how(nearest(checkpoint, predictor.table([[names[g] for g in pair]])))
    assert found["the same genes"][0].edit.genes == pair
    assert found["replaced"]
    assert not found["two replaced"]
    for one in found["replaced"]:
        assert len(set(one.edit.genes) & set(pair)) == 1
        assert np.isnan(one.likeness)
    triple = [*pair, next(g for g in range(len(names)) if g not in pair)]
    fewer = by_how(nearest(checkpoint, predictor.table([[names[g] for g in triple]])))["removed"]
    assert pair in [one.edit.genes for one in fewer]
    one_gene = by_how(nearest(checkpoint, predictor.table([[names[pair[0]]]])))
    assert all(pair[0] in one.edit.genes and len(one.edit.genes) == 2 for one in one_gene["added"])


def test_the_condition_asked_about_comes_first_and_repeats_are_averaged(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    more = MutantTable.from_sets(
        [(3, 5), (3, 5), (3, 5)], value=[1.0, 3.0, 7.0], phenotype=[1, 1, 1], condition=[1, 1, 2]
    )
    table = MutantTable.concatenate([known.table, more])
    part = np.concatenate([known.part, np.zeros(3, np.uint8)])
    checkpoint = replace(predictor.checkpoint, known=replace(known, table=table, part=part))
    asked = predictor.table([["G003", "G005"]])
    asked.condition[:] = 1
    same = by_how(nearest(checkpoint, asked))["the same genes"]
    assert [one.condition for one in same] == [1, 0, 2]
    assert same[0].values["epsilon"].value == 2.0
    assert same[0].values["epsilon"].count == 2
    assert same[0].kinds == ("absent", "absent")
