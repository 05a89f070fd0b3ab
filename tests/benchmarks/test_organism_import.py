"""The bench of organisms from files at toy size."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from benchmarks.organism_import import bench_organism_import, write_files


def test_report_of_a_small_organism(tmp_path: Path) -> None:
    report = bench_organism_import(genes=300, lines=20_000, aliases=3_000, folder=tmp_path)
    assert json.loads(json.dumps(report)) == report
    assert report["genes"] == 300
    links = report["rows"]["9606.protein.links.detailed.v12.0.txt.gz"]
    assert links == 20_000
    assert report["rows"]["9606.protein.aliases.v12.0.txt.gz"] == 3_000
    # Six channels; text mining is read on request only.
    assert len(report["edges"]) == 6
    assert 0.55 < report["edges"]["string_coexpression"] / (links / 2) < 0.65
    assert report["cpu_seconds"] > 0
    assert report["peak_mib"] > 0
    assert list(tmp_path.iterdir()) == []


def test_every_pair_stands_in_both_orders_with_the_same_scores(tmp_path: Path) -> None:
    write_files(tmp_path, 50, 400, 100, 0)
    path = tmp_path / "9606.protein.links.detailed.v12.0.txt.gz"
    head, *rows = gzip.decompress(path.read_bytes()).decode().rstrip("\n").split("\n")
    assert head.split(" ")[:2] == ["protein1", "protein2"]
    found = {tuple(row.split(" ")[:2]): row.split(" ")[2:] for row in rows}
    assert len(found) == len(rows) == 400
    assert all(found[other, one] == scores for (one, other), scores in found.items())
    assert all(one != other for one, other in found)
