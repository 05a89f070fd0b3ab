"""How a run's rows are split: drawn, in folds, or taken from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets.pinned import write_pinned
from wildtype.errors import ConfigError, DatasetError, SplitError
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig

BASE = ["data.name=tiny-growth", "run.progress=false"]


def test_folds_test_every_row_once() -> None:
    dataset = tiny_dataset()
    parts = [prepare(compose([*BASE, "split.folds=3", f"split.fold={i}"]), dataset) for i in range(3)]
    tested = np.concatenate([part.split.test for part in parts])
    assert sorted(tested.tolist()) == list(range(len(parts[0].dataset)))


def test_a_pinned_split_is_taken_as_it_is(tmp_path: Path) -> None:
    dataset = tiny_dataset()
    drawn = prepare(compose([*BASE, "seed=3"]), dataset)
    path = tmp_path / "pinned.json"
    write_pinned(drawn.split, drawn.dataset, path)
    again = prepare(compose([*BASE, "seed=9", f"split.pinned={path}"]), dataset)
    for side in ("train", "validation", "test"):
        assert np.array_equal(getattr(again.split, side), getattr(drawn.split, side))
    assert again.split.seed == 3


def test_an_option_of_another_split_is_refused() -> None:
    with pytest.raises(SplitError, match="order"):
        prepare(compose([*BASE, "split.order=2"]), tiny_dataset())


def graphs_chosen(seed: int = 0, **settings: object) -> TrainConfig:
    config = compose(BASE)
    return replace(config, data=replace(config.data, **settings), seed=seed)  # type: ignore[arg-type]


def test_chosen_and_rewired_graphs_are_what_models_see() -> None:
    dataset = tiny_dataset()
    whole = prepare(graphs_chosen(), dataset)
    only = prepare(graphs_chosen(graphs=["regulatory"]), dataset).dataset.organism.graphs
    assert list(only) == ["regulatory"]
    assert prepare(graphs_chosen(without=["physical"]), dataset).dataset.organism.graphs.sha256 == only.sha256
    rewired = [prepare(graphs_chosen(seed, rewired=True), dataset) for seed in (0, 1)]
    assert len({data.dataset.organism.graphs.sha256 for data in (whole, *rewired)}) == 3
    assert rewired[0].whole.organism.graphs.sha256 == rewired[0].dataset.organism.graphs.sha256
    for name, relation in rewired[0].dataset.organism.graphs.items():
        before = whole.dataset.organism.graphs[name]
        assert np.array_equal(np.diff(relation.adjacency.indptr), np.diff(before.adjacency.indptr))
    for part in ("train", "validation", "test"):  # the rows are the same, so that runs can be compared
        assert np.array_equal(getattr(rewired[0].split, part), getattr(whole.split, part))
    with pytest.raises(ConfigError, match=r"data\.graphs names 'ppi'"):
        prepare(graphs_chosen(graphs=["ppi"]), dataset)


def test_rewiring_keeps_the_degrees_among_the_measured_genes() -> None:
    dataset = tiny_dataset()
    far = np.bincount(dataset.table.row, weights=dataset.table.gene >= 15) > 0
    part = replace(dataset, table=dataset.table.take(~far))
    seen, rewired = (
        prepare(graphs_chosen(tokens="measured", rewired=on), part).dataset.organism for on in (False, True)
    )
    assert len(seen.genes) == len(rewired.genes) == 15
    for name, relation in rewired.graphs.items():
        assert np.array_equal(np.diff(relation.adjacency.indptr), np.diff(seen.graphs[name].adjacency.indptr))


def test_a_variant_of_the_organism_that_is_not_built_is_named() -> None:
    with pytest.raises(DatasetError, match=r"'ecoli-core-string9.1' is no variant of 'ecoli-core'"):
        prepare(compose(["data=ecoli-core-growth", "data.organism=ecoli-core-string9.1"]))
