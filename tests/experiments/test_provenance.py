"""A run on one study of a provenance group never sees what another measured of a held-out pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.test_provenance import apart
from tests.experiments.test_evidence import QUICK, run
from wildtype.datasets import Dataset
from wildtype.errors import ConfigError
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.organism import GeneGraphs, Relation

TARGET, FURTHER = "later:epsilon", "earlier:epsilon"
WORDS = (
    f"data.phenotypes=['{TARGET}']",
    f"model.evidence.also=['{FURTHER}']",
    "split.validation=0.2",
    "split.test=0.2",
)
ONE = np.zeros(1), np.ones(1)


def joined() -> Dataset:
    """Pairs of which the earlier study has all, and the later study, the target, three in four."""
    dataset = apart(("later", "earlier"), 240)
    return replace(dataset, table=dataset.table.take(np.r_[0:180, 240:480]))


@pytest.mark.parametrize("split", ["random", "one-unseen", "unseen", "any-unseen"])
def test_a_held_out_pair_is_no_evidence_in_any_study(split: str) -> None:
    data = prepare(compose([*QUICK, *WORDS, f"split.name={split}"]), joined())
    known = data.known()
    held = {one for part in ("validation", "test") for one in data.part(part).sets()}
    assert held
    evidence = known.evidence((TARGET,), (FURTHER,), *ONE)
    assert held.isdisjoint(evidence.sets())
    # What the earlier study alone has measured is evidence.
    trained = set(data.part("train").sets())
    assert set(evidence.take(evidence.phenotype == 1).sets()) - trained
    genes = {g for names in data.split.held_out_genes.values() for g in names}
    positions = [
        known_gene for known_gene, name in enumerate(data.whole.organism.genes.names) if name in genes
    ]
    assert not np.isin(evidence.gene, positions).any()


@pytest.mark.slow
def test_numbers_of_the_earlier_study_for_held_out_pairs_change_no_prediction(tmp_path: Path) -> None:
    dataset = joined()
    first = run(tmp_path / "a", dataset, *WORDS)
    known = first.checkpoint.known
    names = known.phenotypes
    held = np.unique(known.table.set_id[np.isin(known.part, [1, 2])])
    further = known.table.phenotype == names.index(FURTHER)
    in_held = np.isin(known.table.set_id, held)

    def changed(rows: np.ndarray) -> Dataset:
        value = known.table.value.copy()
        value[rows] += 1
        return replace(dataset, table=replace(known.table, value=value))

    asked = known.table.take(known.table.phenotype == names.index(TARGET))
    predicted = [
        run(tmp_path / name, changed(further & rows), *WORDS).checkpoint.predict(asked)
        for name, rows in (("b", in_held), ("c", ~in_held))
    ]
    assert (further & in_held).sum() > 20
    expected = first.checkpoint.predict(asked)
    assert np.array_equal(predicted[0], expected)
    assert not np.array_equal(predicted[1], expected)


@pytest.mark.parametrize("measured", ["earlier:epsilon", "later:epsilon", "earlier"])
def test_a_relation_made_of_the_labels_is_refused(measured: str) -> None:
    """Only feature blocks were: genetic interactions as a graph told the labels of test rows."""
    dataset = joined()
    graphs = [replace(relation, measured=("another:size",)) for relation in dataset.organism.graphs.values()]
    made = Relation.from_edges("genetic", [0], [1], graphs[0].n, directed=False, measured=[measured])
    leaking = replace(dataset, organism=replace(dataset.organism, graphs=GeneGraphs([*graphs, made])))
    words = [*QUICK, *WORDS, "split.name=random"]
    with pytest.raises(ConfigError, match=r"'genetic' is made of .*epsilon'.* set data.without=\[genetic\]"):
        prepare(compose(words), leaking)
    with pytest.raises(ConfigError, match="'both' is made of measurements"):
        prepare(compose([*words, f"data.merge={{both: [genetic,{graphs[0].name}]}}"]), leaking)
    left = prepare(compose([*words, "data.without=[genetic]"]), leaking)
    assert list(left.dataset.organism.graphs) == [relation.name for relation in graphs]
