"""The build of a generated archive of the screen of 2016."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.screen_build import TABLES, bench_screen_build, invented_organism, write_archive
from wildtype.sources.yeast.screens import costanzo2016


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
