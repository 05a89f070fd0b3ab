"""Stored masks: equal to generated ones from every layout, as large as predicted, refused if damaged."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutants.wirings import small_graph, small_table
from wildtype.errors import ConfigError, DatasetError, OutputError
from wildtype.mutants import MutantTable
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.cell_graph import CellGraph
from wildtype.mutants.edge_masks import LoopMasks, Wiring
from wildtype.mutants.loader import MutantLoader
from wildtype.mutants.precomputed import LAYOUTS, PrecomputedMasks, estimate, stored_arrays, write_masks
from wildtype.mutants.precomputed import write as writer
from wildtype.organism import GeneIndex, Relation

layouts = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.fixture
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, CellGraph, MutantTable]:
    graph, table = small_graph(), small_table(20)
    write_masks(graph, table, tmp_path / "masks", getattr(request, "param", "indices"))
    return tmp_path / "masks", graph, table


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.npy")}


@layouts
@settings(max_examples=12)
@given(
    n=st.integers(1, 14),
    seed=st.integers(0, 50),
    metabolism=st.booleans(),
    mutants=st.integers(1, 9),
    removes=st.sampled_from([("absent", "reduced"), ("absent",), ("added", "overexpressed"), ()]),
)
def test_what_is_stored_is_what_is_generated_and_as_large_as_predicted(
    tmp_path_factory: pytest.TempPathFactory,
    layout: str,
    n: int,
    seed: int,
    metabolism: bool,
    mutants: int,
    removes: tuple[str, ...],
) -> None:
    graph, table = small_graph(n, seed, metabolism=metabolism), small_table(mutants, n, seed)
    folder = tmp_path_factory.mktemp("stored") / "masks"
    write_masks(graph, table, folder, layout, removes=removes)
    predicted = stored_arrays(Wiring(graph, removes=removes), table, layout)
    assert sizes(folder) == {array.file: array.bytes for array in predicted}
    masks = PrecomputedMasks.open(folder, graph, table)
    rows = np.random.default_rng(seed).integers(0, mutants, 5)
    batch = MutantBatch.from_table(table).take(torch.from_numpy(rows))
    expected = LoopMasks(graph, removes=removes).masks(batch)
    found = masks.masks(rows)
    assert list(found) == list(expected)
    for name, mask in expected.items():
        assert found[name].dtype == torch.bool
        assert torch.equal(found[name], mask)
    masks.check(np.arange(mutants))


@layouts
def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    graph, table = small_graph(), small_table(11)
    write_masks(graph, table, tmp_path / "one", layout)
    monkeypatch.setattr(writer, "CHUNK", 4 * sum(Wiring(graph).edges.values()))
    seen: list[tuple[int, int]] = []
    write_masks(graph, table, tmp_path / "many", layout, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(4, 11), (8, 11), (11, 11)]
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes()


def test_node_masks_are_the_kept_genes_and_reactions(tmp_path: Path) -> None:
    graph, table = small_graph(), small_table(9)
    write_masks(graph, table, tmp_path / "masks", "nodes")
    nodes = PrecomputedMasks.open(tmp_path / "masks", graph, table).nodes(np.arange(9))
    gone = (table.kind == 0) | (table.kind == 1)
    gene = np.ones((9, graph.n), bool)
    gene[table.row[gone], table.gene[gone]] = False
    assert (nodes["gene"].numpy() == gene).all()
    absent = MutantTable.from_sets([np.flatnonzero(~row).tolist() for row in gene])
    assert graph.metabolism is not None
    assert (nodes["reaction"].numpy() == graph.metabolism.alive(graph.genes, absent)).all()


def test_node_masks_are_only_in_their_layout(stored) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="stored as indices"):
        PrecomputedMasks.open(*stored).nodes([0])


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_the_loader(stored, shuffle: bool) -> None:  # type: ignore[no-untyped-def]
    _, graph, table = stored
    loader = MutantLoader(replace(table, value=np.arange(20, dtype=np.float32)), 6, shuffle=shuffle, seed=3)
    loader.set_epoch(2)
    masks = PrecomputedMasks.open(*stored)
    served = list(masks.batches(6, shuffle=shuffle, seed=3, epoch=2))
    generated = LoopMasks(graph)
    assert [len(batch) for batch, _ in served] == [6, 6, 6, 2]
    for (batch, found), theirs in zip(served, loader, strict=True):
        assert torch.equal(batch.gene, theirs.gene)
        assert torch.equal(batch.offsets, theirs.offsets)
        expected = generated.masks(theirs)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    with pytest.raises(DatasetError, match="batch size 0"):
        next(masks.batches(0))


@pytest.mark.parametrize("row", [-1, 20])
def test_a_row_that_is_not_there_is_refused(stored, row: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DatasetError, match=f"no row {row} in the masks of 20 mutants"):
        PrecomputedMasks.open(*stored).masks([3, row])


# --- what is refused


@layouts
def test_every_truncated_or_missing_file_is_refused(tmp_path: Path, layout: str) -> None:
    graph, table = small_graph(), small_table(20)
    folder = tmp_path / "masks"
    write_masks(graph, table, folder, layout)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] if path.suffix == ".npy" else whole[: len(whole) // 2])
        with pytest.raises(DatasetError, match="damaged"):
            PrecomputedMasks.open(folder, graph, table)
        path.unlink()
        with pytest.raises(DatasetError, match=f"{path.name}.*missing"):
            PrecomputedMasks.open(folder, graph, table)
        path.write_bytes(whole)
    PrecomputedMasks.open(folder, graph, table)


def test_masks_of_another_graph_or_table_are_refused(stored) -> None:  # type: ignore[no-untyped-def]
    folder, graph, table = stored
    other = small_graph(seed=1)
    for changed in (
        other,
        replace(graph, rule="all"),
        replace(graph, metabolism=None),
        replace(graph, relations=dict(reversed(graph.relations.items()))),
        replace(graph, genes=GeneIndex([*graph.genes.names[:-1], "X"])),
    ):
        with pytest.raises(DatasetError, match="of another graph"):
            PrecomputedMasks.open(folder, changed, table)
    for changed_table in (
        small_table(20, seed=1),
        table.take(np.arange(19)),
        table.take(np.arange(20)[::-1]),
        replace(table, kind=np.zeros_like(table.kind)),
    ):
        with pytest.raises(DatasetError, match="of another table"):
            PrecomputedMasks.open(folder, graph, changed_table)
    PrecomputedMasks.open(folder, graph, replace(table, value=table.value + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "format 2"),
        ({"layout": "lmdb"}, "do not fit"),
        ({"layout": "bits"}, "do not fit"),
        ({"arrays": []}, "do not fit"),
        ({"arrays": 3}, "damaged"),
        ({"removes": None}, "damaged"),
    ],
)
def test_a_changed_manifest_is_refused(stored, change: dict[str, object], message: str) -> None:  # type: ignore[no-untyped-def]
    folder, graph, table = stored
    path = folder / "masks.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | change))
    with pytest.raises(DatasetError, match=message):
        PrecomputedMasks.open(folder, graph, table)
    record["arrays"][0]["file"] = "../0.npy"
    path.write_text(json.dumps(record))
    with pytest.raises(DatasetError, match="damaged"):
        PrecomputedMasks.open(folder, graph, table)


def test_damaged_values_are_found(stored) -> None:  # type: ignore[no-untyped-def]
    folder, graph, table = stored
    path = folder / "1.npy"  # positions of the first relation
    whole = path.read_bytes()
    path.write_bytes(whole[:-4] + (10**6).to_bytes(4, "little"))
    with pytest.raises(DatasetError, match="no such edge"):
        PrecomputedMasks.open(folder, graph, table).masks(np.arange(20))
    first = int.from_bytes(whole[128:132], "little")
    other = next(edge for edge in range(20) if edge != first)
    path.write_bytes(whole[:128] + other.to_bytes(4, "little") + whole[132:])
    with pytest.raises(DatasetError, match="'physical' is not as generated"):
        PrecomputedMasks.open(folder, graph, table).check(np.arange(20))
    path.write_bytes(whole)
    offsets = folder / "0.npy"
    offsets.write_bytes(offsets.read_bytes()[:-8] + (10**6).to_bytes(8, "little"))
    with pytest.raises(DatasetError, match="offsets of 'physical'"):
        PrecomputedMasks.open(folder, graph, table).masks([19])


# --- where nothing is written


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(OutputError, match="mine.*the folder is not empty"):
        write_masks(small_graph(), small_table(3), tmp_path / "mine", "bits")
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]
    (tmp_path / "empty").mkdir()
    write_masks(small_graph(), small_table(3), tmp_path / "empty", "bits")


def test_unknown_layout_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'lmdb' is not a layout"):
        write_masks(small_graph(), small_table(3), tmp_path / "masks", "lmdb")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("code", "reason"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only")])
def test_a_disk_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    def fail(done: int, total: int) -> None:
        raise OSError(code, os.strerror(code))

    with pytest.raises(OutputError, match=f"masks.*{reason}"):
        write_masks(small_graph(), small_table(3), tmp_path / "masks", "uint8", progress=fail)
    assert not os.listdir(tmp_path)


@pytest.mark.slow
def test_a_real_limit_on_file_sizes_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from tests.mutants.wirings import small_graph, small_table\n"
        "from wildtype.mutants.precomputed import write_masks\n"
        "from wildtype.errors import OutputError\n"
        "write_masks(small_graph(), small_table(2), sys.argv[1] + '/warm', 'uint8')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))\n"
        "try: write_masks(small_graph(), small_table(2000), sys.argv[1] + '/masks', 'uint8')\n"
        "except OutputError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "/masks" in result.stdout
    assert "file size" in result.stdout
    assert os.listdir(tmp_path) == ["warm"]


# --- the estimate


def test_estimate_is_exact_in_bytes_and_leaves_nothing(tmp_path: Path) -> None:
    graph, table = small_graph(), small_table(30)
    rows = estimate(graph, table, tmp_path / "not" / "there", seconds=0.0)
    assert not os.listdir(tmp_path)
    assert [row.layout for row in rows] == list(LAYOUTS)
    for row in rows:
        write_masks(graph, table, tmp_path / row.layout, row.layout)
        assert row.bytes == sum(sizes(tmp_path / row.layout).values()) == sum(row.bytes_by_relation.values())
        assert (row.mutants, row.edges) == (30, sum(Wiring(graph).edges.values()))
        assert row.sample_mutants == 16
        assert row.build_seconds == pytest.approx(row.sample_seconds * 30 / 16)
        assert row.sample_folder == str(tmp_path)
        assert row.fits
        assert not replace(row, free_bytes=row.bytes - 1).fits


def test_estimate_without_a_place_to_write_measures_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (row,) = estimate(small_graph(), small_table(3), "/proc/none/masks", layouts=["bits"], seconds=0.0)
    assert row.sample_folder == str(tmp_path)
    assert (row.sample_mutants, os.listdir(tmp_path)) == (3, [])


def test_masks_of_the_trigenic_dataset_would_take_most_of_a_terabyte() -> None:
    """332,313 mutants over nine relations of 281,111 edges: bytes by the formula, nothing written."""
    n, m, e = 6607, 332_313, 281_111
    draw = np.random.default_rng(0)
    pairs = draw.choice(n * (n - 1), e, replace=False)
    rows, columns = pairs // (n - 1), pairs % (n - 1)
    one = Relation.from_edges("r", rows, columns + (columns >= rows), n, directed=True)
    graph = CellGraph(GeneIndex([f"G{i}" for i in range(n)]), {f"r{i}": one for i in range(9)})
    thirds = np.arange(3) * (n // 3)  # one gene of each, so that no gene stands twice in a row
    table = MutantTable.from_matrix(draw.integers(0, n // 3, (m, 3)) + thirds)
    wiring = Wiring(graph)
    full = sum(array.bytes for array in stored_arrays(wiring, table, "uint8"))
    assert full == 9 * (m * e + 128)
    assert 0.8e12 < full < 0.9e12
    assert sum(array.bytes for array in stored_arrays(wiring, table, "nodes")) == m * 826 + 128
