"""Flux balance against cobra, the shortcuts against plain solves, chunks and processes."""

from __future__ import annotations

import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Metabolism
from wildtype.organism.metabolism import read_metabolism
from wildtype.sources.insilico import chunks
from wildtype.sources.insilico.chunks import ChunkSolver
from wildtype.sources.insilico.fba import Change, GrowthProgram, Status, solve_all
from wildtype.sources.insilico.models import model_file
from wildtype.sources.insilico.simulate import GrowthSimulator, simulate_growth

N = 137


@pytest.fixture(scope="module")
def metabolism() -> Metabolism:
    return read_metabolism(model_file("ecoli-core"), cache=False)


@pytest.fixture(scope="module")
def genes(metabolism: Metabolism) -> GeneIndex:
    return GeneIndex(metabolism.genes)


@pytest.fixture(scope="module")
def program(metabolism: Metabolism) -> GrowthProgram:
    return GrowthProgram(metabolism)


@pytest.fixture(scope="module")
def model() -> Any:
    from cobra.io import read_sbml_model

    return read_sbml_model(str(model_file("ecoli-core")))


def plain(metabolism: Metabolism, genes: GeneIndex, program: GrowthProgram, table: MutantTable) -> np.ndarray:
    """Every mutant solved by itself."""
    dead = metabolism.dead_reactions(genes, table)
    rows = [
        Change.closing(dead.indices[a:b].astype(np.int64))
        for a, b in zip(dead.indptr[:-1], dead.indptr[1:], strict=True)
    ]
    return solve_all(program, rows).growth / program.wild_type.value


def test_single_deletions_equal_cobra(metabolism: Metabolism, genes: GeneIndex, model: Any) -> None:
    from cobra.flux_analysis import single_gene_deletion

    found = single_gene_deletion(model, processes=1)
    expected = {next(iter(i)): np.nan_to_num(g) for i, g in zip(found.ids, found.growth, strict=True)}
    wild = model.slim_optimize()
    fitness = simulate_growth("ecoli-core", MutantTable.from_matrix(np.arange(N)[:, None]))
    np.testing.assert_allclose(fitness, [expected[g] / wild for g in genes.names], atol=1e-6)
    assert (fitness >= 1e-3).sum() == 130


def test_double_deletions_equal_cobra(genes: GeneIndex, model: Any) -> None:
    from cobra.flux_analysis import double_gene_deletion

    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(N, 24, replace=False))
    names = [genes.names[g] for g in some]
    found = double_gene_deletion(model, names, processes=1)
    expected = {frozenset(i): np.nan_to_num(g) for i, g in zip(found.ids, found.growth, strict=True)}
    wild = model.slim_optimize()
    pairs = np.array(list(combinations(some, 2)))
    fitness = simulate_growth("ecoli-core", MutantTable.from_matrix(pairs))
    for (a, b), f in zip(pairs, fitness, strict=True):
        assert f == pytest.approx(expected[frozenset((genes.names[a], genes.names[b]))] / wild, abs=1e-6)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, N - 1), max_size=8, unique=True), min_size=1, max_size=12))
def test_shortcuts_equal_plain_solves(
    metabolism: Metabolism, genes: GeneIndex, program: GrowthProgram, sets: list[list[int]]
) -> None:
    table = MutantTable.from_sets(sets)
    simulator = GrowthSimulator(metabolism, genes)
    expected = plain(metabolism, genes, program, table)
    np.testing.assert_allclose(simulator.fitness(table), expected, atol=2e-6)
    np.testing.assert_allclose(simulator.fitness(table), expected, atol=2e-6)


def test_shortcuts_equal_plain_solves_around_interactions(
    metabolism: Metabolism, genes: GeneIndex, program: GrowthProgram
) -> None:
    simulator = GrowthSimulator(metabolism, genes)
    singles = simulator.fitness(MutantTable.from_matrix(np.arange(N)[:, None]))
    pairs = np.array(list(combinations(range(N), 2)))
    doubles = simulator.fitness(MutantTable.from_matrix(pairs))
    hot = pairs[np.abs(doubles - singles[pairs].prod(axis=1)) > 1e-6]
    assert 0.08 < len(hot) / len(pairs) < 0.11
    rng = np.random.default_rng(1)
    some = hot[rng.choice(len(hot), 120, replace=False)]
    triples = [
        sorted({*pair, int(c)}) for pair, c in zip(some.tolist(), rng.integers(0, N, 120), strict=True)
    ]
    for table in (MutantTable.from_matrix(some), MutantTable.from_sets(triples)):
        np.testing.assert_allclose(
            simulator.fitness(table), plain(metabolism, genes, program, table), atol=2e-6
        )
    assert simulator.counts["solved"] + simulator.counts["inferred"] == simulator.counts["distinct"]
    assert simulator.counts["inferred"] > simulator.counts["solved"] > 0
    assert simulator.counts["infeasible"] > 0
    assert simulator.counts["failed"] == 0


def test_answers_do_not_depend_on_order(metabolism: Metabolism, program: GrowthProgram) -> None:
    rng = np.random.default_rng(2)
    dead = [
        Change.closing(np.sort(rng.choice(len(metabolism.reactions), k, replace=False)))
        for k in (1, 2, 3, 4) * 10
    ]
    first, last = solve_all(program, dead), solve_all(GrowthProgram(metabolism), dead[::-1])
    np.testing.assert_array_equal(first.growth, last.growth[::-1])
    np.testing.assert_array_equal(first.active, last.active[::-1])


def test_only_absent_genes_count(metabolism: Metabolism, genes: GeneIndex) -> None:
    singles = simulate_growth("ecoli-core", MutantTable.from_matrix(np.arange(N)[:, None]))
    essential = int(np.flatnonzero(singles == 0)[0])
    slow = int(np.flatnonzero((singles > 0.1) & (singles < 0.9))[0])
    pair = [[essential, slow]] * 2
    kinds = np.zeros((2, 2), np.uint8)
    kinds[1, int(np.sort(pair[1]).tolist().index(essential))] = Kind.OVEREXPRESSED
    table = MutantTable.from_matrix(np.sort(pair), kind=kinds.reshape(-1))
    np.testing.assert_array_equal(simulate_growth("ecoli-core", table), [0.0, singles[slow]])
    np.testing.assert_array_equal(simulate_growth("ecoli-core", MutantTable.from_sets([[], [slow]]))[0], 1.0)


def test_infeasible_programs_grow_nothing(metabolism: Metabolism, program: GrowthProgram) -> None:
    everything = np.arange(len(metabolism.reactions))
    closed = program.solve(Change.closing(everything[metabolism.lower <= 0]))
    assert closed.status is Status.INFEASIBLE
    assert closed.value == 0
    assert program.solve(Change.closing(everything[:0])).value == pytest.approx(0.8739215, abs=1e-6)


def test_a_wild_type_that_does_not_grow_is_refused(metabolism: Metabolism) -> None:
    from dataclasses import replace

    with pytest.raises(DatasetError, match="does not grow"):
        GrowthProgram(replace(metabolism, lower=np.zeros_like(metabolism.lower)))


@pytest.mark.slow
def test_processes_chunks_and_resuming_give_the_same(
    metabolism: Metabolism, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 8)
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    rng = np.random.default_rng(3)
    dead = [
        Change.closing(np.sort(rng.choice(len(metabolism.reactions), 3, replace=False))) for _ in range(30)
    ]
    one = ChunkSolver(metabolism, processes=1).solve(dead)
    assert not (tmp_path / "fba").exists()
    two = ChunkSolver(metabolism, processes=2, keep=True).solve(dead)
    files = sorted((tmp_path / "fba").rglob("????????????????????????????????.npz"))
    assert len(files) == 4
    files[0].unlink()
    files[1].write_bytes(b"cut off")
    solved: list[int] = []
    plainly = chunks.solve_all
    monkeypatch.setattr(chunks, "solve_all", lambda p, d: solved.append(len(d)) or plainly(p, d))
    again = ChunkSolver(metabolism, processes=1, keep=True).solve(dead)
    assert len(solved) == 2
    for other in (two, again):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_process_that_dies_is_an_error(metabolism: Metabolism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks.sys, "executable", "/bin/true")
    with pytest.raises(DatasetError, match=r"process died \(exit code 0\)"):
        ChunkSolver(metabolism, processes=2).solve([Change.closing(np.array([1]))])


def test_a_process_that_is_dead_before_it_is_asked_is_an_error(
    metabolism: Metabolism, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = chunks._send

    def late(worker: subprocess.Popen[str], job: tuple[Path, Any]) -> int:
        worker.wait()  # so that nobody reads what it is told
        return send(worker, job)

    monkeypatch.setattr(chunks.sys, "executable", "/bin/true")
    monkeypatch.setattr(chunks, "_send", late)
    with pytest.raises(DatasetError, match=r"process died \(exit code 0\)"):
        ChunkSolver(metabolism, processes=2).solve([Change.closing(np.array([1]))])


def test_unknown_models_are_never_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="only 'ecoli-core' and 'ecoli-ijo1366' are packaged"):
        simulate_growth("iML1515", MutantTable.from_sets([[0]]))
