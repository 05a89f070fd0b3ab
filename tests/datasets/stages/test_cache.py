from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.stages.made import ORGANISM, measured, one
from wildtype.datasets import Dataset
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.stages.cache import dataset_key, materialise, materialised_folder
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import ConfigError, OutputError
from wildtype.organism import Organism

QUERY, STORE, POLICIES = "SELECT id FROM measurements", "ab" * 32, Policies()
KEY = dataset_key(QUERY, STORE, POLICIES, ORGANISM)


class Builder:
    """Builds a dataset, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Dataset:
        self.calls += 1
        rows = measured(one("G1", value=0.9), one("G1", value=0.8), one("G2", "G1"), one("X9"))
        return build_dataset(rows, ORGANISM, name="toy", single_fitness=np.ones(5, np.float32))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))


def test_the_second_time_it_is_read() -> None:
    build = Builder()
    first, hit = materialise(KEY, build, ORGANISM)
    again, second_hit = materialise(KEY, build, ORGANISM)
    assert (hit, second_hit, build.calls) == (False, True, 1)
    assert again.card() == first.card()
    for name in ("gene", "offsets", "kind", "condition", "phenotype", "value", "sd"):
        assert getattr(again.table, name).tobytes() == getattr(first.table, name).tobytes()
    assert again.stages == first.stages
    np.testing.assert_array_equal(again.single_fitness, first.single_fitness)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["dataset.json", "table.npz", "singles.npz", "table.parquet"])
@pytest.mark.parametrize("how", ["cut", "flipped", "removed"])
def test_a_damaged_entry_is_built_again(name: str, how: str) -> None:
    build = Builder()
    materialise(KEY, build, ORGANISM)
    path = materialised_folder(KEY) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(content if how == "flipped" else content[: len(content) // 2])
    rebuilt, hit = materialise(KEY, build, ORGANISM)
    assert (hit, build.calls) == (False, 2)
    assert rebuilt.sha256 == Builder()().sha256
    assert materialise(KEY, build, ORGANISM)[1]


def test_everything_that_a_dataset_is_made_from_is_in_its_key() -> None:
    others = Organism("toy", ORGANISM.genes.restrict(np.arange(4)), essential=np.ones(4, bool))
    keys = [
        KEY,
        dataset_key(QUERY + " LIMIT 1", STORE, POLICIES, ORGANISM),
        dataset_key(QUERY, "cd" * 32, POLICIES, ORGANISM),
        dataset_key(QUERY, STORE, replace(POLICIES, replicates="inverse variance"), ORGANISM),
        dataset_key(QUERY, STORE, replace(POLICIES, neutral=("HO",)), ORGANISM),
        dataset_key(QUERY, STORE, POLICIES, others),
        dataset_key(QUERY, STORE, POLICIES, replace(ORGANISM, essential=None)),
        dataset_key(QUERY, STORE, POLICIES, ORGANISM, name="other"),
    ]
    assert len(set(keys)) == len(keys)
    assert dataset_key(QUERY, STORE, Policies(), replace(ORGANISM, description="told otherwise")) == KEY


@pytest.mark.parametrize("key", ["../../etc", "", "toy", KEY.upper()])
def test_a_key_is_never_a_path(key: str) -> None:
    with pytest.raises(ConfigError, match="is not the key of a dataset"):
        materialise(key, Builder(), ORGANISM)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    with pytest.raises(OutputError, match="not a folder|in the way"):
        materialise(KEY, Builder(), ORGANISM)


def test_another_process_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()

    def meanwhile() -> Dataset:
        dataset, _ = materialise(KEY, build, ORGANISM)

        def refused(*_: object) -> None:
            raise OutputError("cannot write: the directory is not empty")

        monkeypatch.setattr("wildtype.datasets.stages.cache.save_dataset", refused)
        return dataset

    assert materialise(KEY, meanwhile, ORGANISM)[0].sha256 == build().sha256
