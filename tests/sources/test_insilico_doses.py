"""Kinds and doses as flux bounds, foreign reactions, parsimonious flux, and the dataset made of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.insilico import in_silico
from wildtype.datasets.interactions import epsilon
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import Organism
from wildtype.organism.gene_rules import minimal_complexes, parse_rule
from wildtype.sources.insilico import build_dose_dataset
from wildtype.sources.insilico.fba import Change, ParsimoniousProgram, Status
from wildtype.sources.insilico.heterologous import FOREIGN, extend, foreign_bounds
from wildtype.sources.insilico.models import model_file
from wildtype.sources.insilico.perturb import PerturbationSimulator, exchanges
from wildtype.sources.insilico.simulate import GrowthSimulator

NATIVE, FOREIGN_GENES = 137, len({reaction.gene for reaction in FOREIGN})
FEW = {"reduced": (0.2, 0.5), "overexpressed": (1.5, 2.0)}
AMBIGUOUS = "b3919"
"""A mutant with several fluxes of the smallest total, of which any may be returned."""
STATES = [
    (Kind.ABSENT, np.nan),
    (Kind.REDUCED, 0.25),
    (Kind.REDUCED, 0.625),
    (Kind.PRESENT, np.nan),
    (Kind.OVEREXPRESSED, 1.5),
    (Kind.OVEREXPRESSED, 3.0),
]


@pytest.fixture(scope="module")
def organism() -> Organism:
    return in_silico("ecoli-core-foreign")


@pytest.fixture(scope="module")
def simulator(organism: Organism) -> PerturbationSimulator:
    assert organism.metabolism is not None
    return PerturbationSimulator(organism.metabolism, organism.genes, processes=1)


@pytest.fixture(scope="module")
def model() -> Any:
    from cobra.io import read_sbml_model

    return read_sbml_model(str(model_file("ecoli-core")))


def mutants(rows: list[dict[int, tuple[Kind, float]]]) -> MutantTable:
    """Build a table of mutants given the state of every perturbed gene."""
    flat = [(gene, *state) for row in rows for gene, state in row.items()]
    gene, kind, dose = zip(*flat, strict=True) if flat else ((), (), ())
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return MutantTable.build(gene, offsets, kind=kind, dose=dose)


def one(organism: Organism, **states: tuple[Kind, float]) -> MutantTable:
    return mutants([{organism.genes.find(name): state for name, state in states.items()}])


def amounts(row: dict[int, tuple[Kind, float]], organism: Organism) -> dict[str, float]:
    """The amount of every gene by name, in a plain loop."""
    out = {name: float(i < NATIVE) for i, name in enumerate(organism.genes.names)}
    for gene, (kind, dose) in row.items():
        out[organism.genes.names[gene]] = {Kind.ABSENT: 0.0, Kind.PRESENT: 1.0, Kind.ADDED: 1.0}.get(
            kind, dose
        )
    return out


native = st.dictionaries(st.integers(0, NATIVE - 1), st.sampled_from(STATES), max_size=6)
added = st.dictionaries(
    st.integers(NATIVE, NATIVE + FOREIGN_GENES - 1), st.just((Kind.ADDED, np.nan)), max_size=2
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(native, added).map(lambda both: both[0] | both[1]), min_size=1, max_size=4))
def test_bounds_equal_their_definition(
    simulator: PerturbationSimulator, organism: Organism, rows: list[dict[int, tuple[Kind, float]]]
) -> None:
    m, flux, opened = simulator.metabolism, simulator.wild_type_flux, foreign_bounds(simulator.metabolism)
    parsed = [parse_rule(text) for text in m.rules]
    rules = [minimal_complexes(rule) if rule is not None else [] for rule in parsed]
    changes = simulator.dosage.limits(mutants(rows)).changes(len(rows))
    for row, change in zip(rows, changes, strict=True):
        lower, upper = m.lower.copy(), m.upper.copy()
        lower[change.reaction], upper[change.reaction] = change.lower, change.upper
        amount = amounts(row, organism)
        for r, rule in enumerate(rules):
            low, high, v = m.lower[r], m.upper[r], flux[r]
            if rule:
                complexes = [min(amount[gene] for gene in members) for members in rule]
                capacity, drive = sum(complexes), sum(complexes) / len(complexes)
                if r in opened:
                    low, high = opened[r] if capacity > 0 else (0.0, 0.0)
                elif capacity == 0:
                    low = high = 0.0
                elif abs(v) > 1e-9 and capacity < 1 - 1e-9:
                    low, high = max(low, -capacity * abs(v)), min(high, capacity * abs(v))
                elif abs(v) > 1e-9 and drive > 1 + 1e-9:
                    low, high = (max(low, drive * v), high) if v > 0 else (low, min(high, drive * v))
            assert abs(lower[r] - low) < 1e-9, m.reactions[r]
            assert abs(upper[r] - high) < 1e-9, m.reactions[r]


def test_deletions_grow_as_in_deletion_analysis(simulator: PerturbationSimulator, organism: Organism) -> None:
    rng = np.random.default_rng(0)
    sets = [sorted(rng.choice(NATIVE, k, replace=False).tolist()) for k in (0, 1, 2, 3) * 30]
    table = MutantTable.from_sets(sets)
    assert organism.metabolism is not None
    deletions = GrowthSimulator(organism.metabolism, organism.genes, processes=1)
    np.testing.assert_allclose(simulator.fitness(table), deletions.fitness(table), atol=2e-6)
    np.testing.assert_array_equal(simulator.fitness(MutantTable.from_sets([[], []])), 1.0)


def test_caps_and_forced_fluxes_grow_as_in_cobra(
    simulator: PerturbationSimulator, organism: Organism, model: Any
) -> None:
    # single genes of single-gene reactions: the bound can be written down by hand
    position = {name: r for r, name in enumerate(simulator.metabolism.reactions)}
    checked = Counter()
    for gene, kind, dose in (
        ("b2779", Kind.REDUCED, 0.5),  # ENO
        ("b1779", Kind.REDUCED, 0.2),  # GAPD
        ("b4025", Kind.OVEREXPRESSED, 1.2),  # PGI
        ("b2779", Kind.OVEREXPRESSED, 1.1),
        ("b3956", Kind.OVEREXPRESSED, 2.0),  # PPC
        ("b1852", Kind.OVEREXPRESSED, 2.0),  # G6PDH2r
        ("b0720", Kind.OVEREXPRESSED, 3.0),  # CS
    ):
        fitness = simulator.fitness(one(organism, **{gene: (kind, dose)}))
        with model:
            for reaction in model.genes.get_by_id(gene).reactions:
                assert reaction.gene_reaction_rule == gene
                v = simulator.wild_type_flux[position[reaction.id]]
                if kind == Kind.REDUCED:
                    reaction.bounds = (
                        max(reaction.lower_bound, -dose * abs(v)),
                        min(reaction.upper_bound, dose * abs(v)),
                    )
                elif v > 0:
                    reaction.lower_bound = dose * v
                elif v < 0:
                    reaction.upper_bound = dose * v
            grown = model.slim_optimize()
        assert fitness[0] == pytest.approx(np.nan_to_num(grown) / simulator.wild_type_growth, abs=1e-6)
        checked["slower" if 0 < fitness[0] < 1 else "dead" if fitness[0] == 0 else "same"] += 1
    assert checked["slower"] >= 4


def test_impossible_forced_flux_is_no_growth(simulator: PerturbationSimulator, organism: Organism) -> None:
    before = simulator.counts["infeasible"]
    assert simulator.fitness(one(organism, b2779=(Kind.OVEREXPRESSED, 5.0)))[0] == 0.0
    assert simulator.counts["infeasible"] == before + 1
    assert np.isnan(simulator.fluxes(one(organism, b2779=(Kind.OVEREXPRESSED, 5.0))).values).all()


def test_one_subunit_drives_nothing_and_isozymes_share(
    simulator: PerturbationSimulator, organism: Organism
) -> None:
    complex_ = {name: (Kind.OVEREXPRESSED, 1.5) for name in ("b0114", "b0115", "b0116")}  # PDH
    for name in complex_:
        assert not simulator.dosage.limits(one(organism, **{name: complex_[name]})).row.size
    assert simulator.dosage.limits(one(organism, **complex_)).row.size > 0
    # PFK has two isozymes: one drives half as much, and one alone carries all
    pfk = simulator.metabolism.reactions.index("PFK")
    found = simulator.dosage.limits(one(organism, b3916=(Kind.OVEREXPRESSED, 2.0)))
    assert found.lower[found.reaction == pfk] == pytest.approx(1.5 * simulator.wild_type_flux[pfk])
    assert pfk not in simulator.dosage.limits(one(organism, b3916=(Kind.REDUCED, 0.1))).reaction
    both = one(organism, b3916=(Kind.ABSENT, np.nan), b1723=(Kind.REDUCED, 0.1))
    found = simulator.dosage.limits(both)
    assert found.upper[found.reaction == pfk] == pytest.approx(0.1 * simulator.wild_type_flux[pfk])


@pytest.mark.parametrize(
    ("gene", "kind", "dose", "message"),
    [
        ("b2779", Kind.REDUCED, np.nan, r"reduced gene 'b2779' \(dose nan\) needs a dose between 0 and 1"),
        ("b2779", Kind.REDUCED, 1.0, "needs a dose between 0 and 1"),
        ("b2779", Kind.OVEREXPRESSED, 0.5, "needs a dose above 1"),
        ("b2779", Kind.ABSENT, 0.5, "takes no dose"),
        ("b2779", Kind.ADDED, np.nan, "is the wild type's own"),
        ("xfp", Kind.OVEREXPRESSED, 2.0, "is foreign: it can only be added"),
    ],
)
def test_kinds_and_doses_that_do_not_fit_are_refused(
    simulator: PerturbationSimulator, organism: Organism, gene: str, kind: Kind, dose: float, message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        simulator.fitness(one(organism, **{gene: (kind, dose)}))


def test_foreign_reactions_are_balanced_and_change_nothing_while_closed(
    model: Any, organism: Organism, simulator: PerturbationSimulator
) -> None:
    for reaction in FOREIGN:
        elements: Counter[str] = Counter()
        for metabolite, coefficient in reaction.coefficients().items():
            known = model.metabolites.get_by_id(metabolite)
            elements["charge"] += coefficient * known.charge
            for element, count in re.findall(r"([A-Z][a-z]?)(\d*)", known.formula):
                elements[element] += coefficient * int(count or 1)
        assert not any(elements.values()), reaction.name
    assert simulator.wild_type_growth == pytest.approx(0.8739215, abs=1e-6)
    assert organism.genes.names[NATIVE:] == tuple(sorted({reaction.gene for reaction in FOREIGN}))
    told = organism.genes.descriptions
    assert set(told) == set(organism.genes.names)
    assert (told["b3916"], told["pdc"]) == (
        "phosphofructokinase",
        "pyruvate decarboxylase, Zymomonas mobilis",
    )
    assert told["s0001"].endswith("; 2 more")
    assert organism.metabolism is not None
    assert organism.metabolism.reactions[-len(FOREIGN) :] == tuple(reaction.name for reaction in FOREIGN)
    assert {a for a, b in zip(*organism.graphs["consecutive"].endpoints()[:2], strict=True) if a >= NATIVE}


def test_added_genes_rescue_what_they_replace(simulator: PerturbationSimulator, organism: Organism) -> None:
    absent, added = (Kind.ABSENT, np.nan), (Kind.ADDED, np.nan)
    assert simulator.fitness(one(organism, b1779=absent))[0] == 0  # GAPD
    assert simulator.fitness(one(organism, b1779=absent, gapN=added))[0] > 0.5
    assert simulator.fitness(one(organism, gapC=added))[0] > 1  # one more way to NADPH
    assert simulator.fitness(one(organism, b1779=absent, noxE=added))[0] == 0


def test_a_network_that_is_no_core_model_is_refused(organism: Organism) -> None:
    assert organism.metabolism is not None
    with pytest.raises(DatasetError, match="has a reaction 'FPK' of its own"):
        extend(organism.metabolism, closed=True)


def test_parsimonious_flux_equals_cobra(
    model: Any, organism: Organism, simulator: PerturbationSimulator
) -> None:
    from cobra.flux_analysis import pfba

    genes = ["", "b0114", "b1852", "b3956", "b2276", "b3919"]
    table = MutantTable.from_sets([[organism.genes.find(gene)] if gene else [] for gene in genes])
    found = simulator.fluxes(table)
    at = [found.names.index(reaction.id) for reaction in model.reactions]
    assert set(range(len(found.names))) - set(at) == set(foreign_bounds(simulator.metabolism))
    for row, gene in zip(found.values, genes, strict=True):
        with model:
            if gene:
                model.genes.get_by_id(gene).knock_out()
            expected = pfba(model).fluxes.to_numpy()
        if gene != AMBIGUOUS:
            np.testing.assert_allclose(row[at], expected, atol=2e-4)
        assert np.abs(row).sum() == pytest.approx(np.abs(expected).sum(), rel=1e-5)


def test_flux_is_feasible_optimal_and_not_larger_than_any_optimum(simulator: PerturbationSimulator) -> None:
    program, m = ParsimoniousProgram(simulator.metabolism), simulator.metabolism
    rng = np.random.default_rng(1)
    for _ in range(20):
        change = Change.closing(np.sort(rng.choice(len(m.reactions), 2, replace=False)))
        solution, plain = program.solve(change), program.growth.solve(change)
        if plain.status is not Status.OPTIMAL:
            assert solution.status is plain.status
            continue
        assert np.abs(m.stoichiometry @ solution.flux).max() < 1e-4
        assert m.objective @ solution.flux == pytest.approx(plain.value, rel=1e-6, abs=1e-9)
        assert np.abs(solution.flux).sum() <= np.abs(plain.flux).sum() + 1e-5
        np.testing.assert_allclose(solution.flux[change.reaction], 0, atol=1e-9)


def test_flux_by_gene_and_secretion(simulator: PerturbationSimulator, organism: Organism) -> None:
    table = MutantTable.from_matrix([[5], [40], [5]])
    reactions, genes, out = (f(table) for f in (simulator.fluxes, simulator.gene_fluxes, simulator.secretion))
    assert genes.values.dtype == np.float32
    assert genes.values.shape == (3, len(organism.genes))
    gpr = simulator.metabolism.gpr(organism.genes).toarray()
    np.testing.assert_allclose(genes.values, np.abs(reactions.values) @ gpr, rtol=1e-5)
    np.testing.assert_array_equal(reactions.values[0], reactions.values[2])
    at = exchanges(simulator.metabolism)
    assert len(at) == 20
    assert out.names == tuple(simulator.metabolism.reactions[r] for r in at)
    np.testing.assert_array_equal(out.values, reactions.values[:, at])
    assert out.values[0, out.names.index("EX_glc__D_e")] == pytest.approx(-10)


def test_secretion_as_rows_leaves_out_and_counts_mutants_without_a_steady_state(
    simulator: PerturbationSimulator, organism: Organism
) -> None:
    impossible = {organism.genes.find("b2779"): (Kind.OVEREXPRESSED, 5.0)}
    table = mutants([{3: STATES[0]}, impossible, {9: STATES[1], 11: STATES[4]}])
    found = simulator.secretion(table)
    rows, left_out = found.to_rows()
    assert left_out == 1
    assert len(rows) == 2 * len(found.names)
    assert rows.sets() == [(3,)] * 20 + [(9, 11)] * 20
    assert rows.dose is not None
    np.testing.assert_array_equal(rows.kind[-2:], [Kind.REDUCED, Kind.OVEREXPRESSED])
    np.testing.assert_array_equal(rows.phenotype, np.tile(np.arange(20), 2))
    np.testing.assert_array_equal(rows.value, found.values[[0, 2]].reshape(-1))


def test_dataset_of_doses(organism: Organism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    name = "ecoli-core-doses"
    d = build_dose_dataset(name, organism, progress=False, processes=1, doubles=900, **FEW)
    t = d.table
    assert d.card()["rows_by_phenotype_and_order"] == {
        "fitness": {"1": NATIVE * 5 + FOREIGN_GENES, "2": 900},
        "epsilon": {"2": 900},
    }
    assert set(np.unique(t.kind)) == {Kind.ABSENT, Kind.REDUCED, Kind.ADDED, Kind.OVEREXPRESSED}
    assert t.dose is not None
    state = list(zip(t.gene.tolist(), t.kind.tolist(), np.nan_to_num(t.dose).tolist(), strict=True))
    rows = [tuple(state[a:b]) for a, b in zip(t.offsets[:-1], t.offsets[1:], strict=True)]
    fitness = {row: v for row, v, p in zip(rows, t.value.tolist(), t.phenotype, strict=True) if p == 0}
    assert len(fitness) == NATIVE * 5 + FOREIGN_GENES + 900
    pairs = [(row, v) for row, v, p in zip(rows, t.value.tolist(), t.phenotype, strict=True) if p == 1]
    expected = [epsilon(fitness[r], fitness[r[:1]], fitness[r[1:]]) for r, _ in pairs]
    np.testing.assert_allclose([v for _, v in pairs], expected, atol=2e-6)
    assert np.mean([v != 0 for _, v in pairs]) > 0.1
    for kind, dose in ((Kind.REDUCED, np.float32(0.2)), (Kind.OVEREXPRESSED, np.float32(2.0))):
        values = [v for row, v in fitness.items() if len(row) == 1 and row[0][1:] == (kind, dose)]
        assert 20 < np.sum(np.array(values) < 1) < NATIVE
    notes = " ".join(d.notes)
    for fact in (
        "SIMULATED",
        "reduced 0.5: 46 of 137 below",
        "added: 0 of 11 below the wild type, 2 above it",
    ):
        assert fact in notes
    save_dataset(d, tmp_path / "kept")
    assert read_dataset(tmp_path / "kept", organism).sha256 == d.sha256
    again = build_dose_dataset(name, organism, progress=False, processes=1, doubles=900, **FEW)
    assert again.sha256 == d.sha256
    split = d.split("random", seed=0)
    assert split.test.size > 0


def test_wrong_dose_sizes_are_refused(organism: Organism) -> None:
    for sizes, message in (
        ({"reduced": (1.2,)}, "reduced dose 1.2 must be between 0 and 1"),
        ({"overexpressed": (0.9,)}, "overexpressed dose 0.9 must be above 1"),
        ({"random_share": 2.0}, "random_share is 2"),
        ({"doubles": 0}, "doubles is 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_dose_dataset("ecoli-core-doses", organism, progress=False, **sizes)  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match="cannot be drawn from"):
        build_dose_dataset(
            "ecoli-core-doses",
            organism,
            progress=False,
            processes=1,
            doubles=90_000,
            reduced=(),
            overexpressed=(),
        )
