"""The build of a generated archive of the screen of 2016."""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial, partialmethod
from pathlib import Path

import numpy as np
import pytest

from benchmarks.screen_build import (
    TABLES,
    bench_screen_build,
    build_generated,
    invented_organism,
    train_generated,
    write_archive,
)
from wildtype.datasets import dataset, dataset_record, measurements
from wildtype.datasets.stages import convert
from wildtype.datasets.stages.rows import StagedRows
from wildtype.datasets.store import Store, ingest, selection
from wildtype.datasets.store.canonical import canonical_blocks
from wildtype.errors import ConfigError
from wildtype.evidence import pair_matrix
from wildtype.experiments.data import prepare
from wildtype.experiments.settings.compose import compose
from wildtype.mutants import grid
from wildtype.sources.yeast.datasets import RECIPES
from wildtype.sources.yeast.pair_datasets import FULL_2016
from wildtype.sources.yeast.readers import ingest as ingest_studies
from wildtype.sources.yeast.screens import costanzo2016, parts


def test_bench_builds_a_screen_in_which_every_cross_has_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    report = bench_screen_build(rows=3000, folder=tmp_path)
    assert report["problem"]["crosses"] == 3000
    assert report["problem"]["unlisted"] == 0
    assert set(report["seconds"]) == set(report["peak_mib"])


def test_the_generated_archive_is_read_as_the_published_one(tmp_path: Path) -> None:
    organism = invented_organism(300)
    write_archive(tmp_path, organism.genes, 1000)
    assert {path.name for path in tmp_path.glob("SGA_*")} == set(TABLES)
    strains, *tables = costanzo2016.read(tmp_path, organism.genes)
    assert (np.diff(strains.offsets) == 1).all()
    epsilon = [part.value for part in tables if part.phenotypes[0].name == "epsilon"]
    assert [len(values) for values in epsilon] == [610, 280, 40, 70]
    assert np.std(np.concatenate(epsilon)) == pytest.approx(0.06, rel=0.1)


@pytest.mark.slow
def test_memory_grows_by_few_bytes_for_each_cross(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows take what they take; all rows together take the columns that are kept of them.

    Per cross: the stored measurements (two of 46 bytes or less) while they are read; later the selected one,
    the staged one and the row of the table (54 bytes). All rows at once took 650 bytes.
    """
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    most = 2_000
    monkeypatch.setattr(ingest, "canonical_blocks", partial(canonical_blocks, most=most))
    monkeypatch.setattr(StagedRows, "apart", partialmethod(StagedRows.apart, most))
    for module in (selection, measurements, parts, convert, dataset, dataset_record, grid):
        monkeypatch.setattr(module, "BLOCK", most)
    organism = invented_organism(400)
    peaks = {}
    for rows in (20_000, 60_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        write_archive(folder, organism.genes, rows)
        with Store.create(folder / "store.duckdb") as store:
            tracemalloc.start()
            list(ingest_studies(store, folder, organism.genes, ["costanzo2016"]))
            RECIPES[FULL_2016].build(store, organism)
            peaks[rows] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert (peaks[60_000] - peaks[20_000]) / 40_000 < 250


@pytest.mark.slow
def test_bench_trains_on_the_generated_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "users"))
    report = bench_screen_build(
        rows=3000, listed=1000, train="model.iterations=1 baselines=[mean]", folder=tmp_path
    )
    assert report["seconds"]["train"] > 0
    assert report["peak_mib"]["train"] > 0
    # Nothing that was generated is left, and nothing went into the user's cache.
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    # Settings that are refused end the other process before it loads what trains.
    with pytest.raises(ConfigError, match=r"failed: wildtype: 'seed=one': Value 'one' of type 'str'"):
        train_generated(tmp_path / "run", ["seed=one"])


@pytest.mark.slow
def test_a_run_adds_few_bytes_for_each_cross(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a run, what models may see, and the matrix of pairs, beside the table of the data set.

    Per cross: one copy of the training crosses (43 bytes) and their sorted cells; copies of the table for its
    genes, for every reader of the training crosses and of all strains of all rows took 248 bytes.
    """
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    for module in (grid, pair_matrix):
        monkeypatch.setattr(module, "BLOCK", 2_000)
    config = compose([f"data={FULL_2016}", "model=pair_screen", "data.listed=2000", "data.crosses=500"])
    peaks = {}
    for rows in (20_000, 60_000):
        place = tmp_path / str(rows)
        place.mkdir()
        dataset = build_generated(place, rows, 0)
        gc.collect()
        tracemalloc.start()
        data = prepare(config, dataset)
        crosses, known = data.crosses(), data.known()
        matrix = known.pair_matrix("epsilon")
        peaks[rows] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert crosses is not None
        assert matrix.known.sum() == 2 * len(crosses.listed)
    assert (peaks[60_000] - peaks[20_000]) / 40_000 < 220
