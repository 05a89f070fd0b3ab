"""What a screen leaves out: by default, on request, and in the condition that it is in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wildtype as wt
from tests.inference.screening.asked import changed, screened
from wildtype.errors import ConfigError
from wildtype.inference.predictor import Predictor
from wildtype.inference.screening.constraints import LEFT_OUT, lethal_pairs
from wildtype.mutants import MutantTable


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


def test_constraints(predictor: Predictor) -> None:
    essential = screened(predictor, 2, top=400, direction="low", exclude_essential=True)
    assert not essential["genes"].str.contains("G023").any()
    assert len(essential) == 23 * 22 // 2
    excluded = screened(predictor, 2, top=400, direction="low", exclude=["abc0", "G001"])
    assert len(excluded) == 22 * 21 // 2
    required = screened(predictor, 2, top=400, direction="low", require=["G000", "G001"])
    assert len(required) == 23 + 22
    assert required.attrs["left_out"] == {"none of the required genes": 22 * 21 // 2}
    new = screened(predictor, 2, top=400, direction="low", unmeasured=True)
    assert new.attrs["left_out"] == {"measured before": 24 * 23 // 2}
    assert new.empty
    assert list(new.columns) == list(required.columns)


def test_linked_genes_are_left_out(predictor: Predictor) -> None:
    found = screened(predictor, 2, top=400, direction="low", min_linkage_kb=10)
    near = {(i, i + 1) for i in range(23)} - {(11, 12), (4, 5), (5, 6)}
    assert found.attrs["left_out"] == {"two genes within 10 kb": len(near)}
    rows = found.set_index("genes")["linkage_kb"]
    assert rows["G000,G002"] == 19
    assert rows["G000,G023"] == np.inf
    assert np.isnan(rows["G000,G005"])
    assert "G000,G001" not in rows.index
    with pytest.raises(ConfigError, match="places of this model.s genes are not known"):
        screened(changed(predictor, coordinates=None), 2, min_linkage_kb=10)


def test_what_a_screen_leaves_out_by_default(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    alone = np.flatnonzero((known.table.order > 1) | (known.table.gene[known.table.offsets[:-1]] != 23))
    places = known.coordinates
    assert places is not None
    end = places.end.copy()
    end[13] = places.start[14] + 0.5  # G013 and G014 overlap; with G005, a place is not known
    dubious = np.arange(24) == 2
    real = changed(
        predictor,
        table=known.table.take(alone),
        part=known.part[alone],
        coordinates=replace(places, end=end),
        dubious=dubious,
    )
    design: dict[str, Any] = {"among": ["G000", "G001", "G002", "G013", "G014", "G016", "G023:absent"]}
    found = real.screen(2, top=99, direction="low", **design)
    pairs = {frozenset(genes.split(",")) for genes in found["genes"]}
    assert pairs == {frozenset(pair) for pair in (("G000", "G016"), ("G001", "G016"))}
    assert found.attrs["left_out"] == {
        "lethal: deletes an essential gene": 6,
        "holds a dubious ORF": 5,
        "holds an ORF that overlaps another": 7,
        "two genes within 200 kb": 1,
    }
    assert found.attrs["unchecked"] == []
    # One more gene of another chromosome, or of the same one.
    for kept, rows in (("lethal", 4), ("dubious", 3), ("overlapping", 6), ("linked", 3)):
        assert len(real.screen(2, top=99, direction="low", include=[kept], **design)) == rows
    every = real.screen(2, top=99, direction="low", include=LEFT_OUT, **design)
    assert (every.attrs["asked"], every.attrs["left_out"]) == (21, {})
    blind = changed(predictor, coordinates=None).screen(2, top=1)
    assert blind.attrs["unchecked"] == ["linked", "overlapping", "dubious"]


def test_known_lethal_pairs_are_left_out(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    value = known.table.value.copy()
    pairs = np.flatnonzero((known.table.order == 2) & (known.table.phenotype == 0))
    value[pairs] = 0.5
    value[known.table.phenotype == 1] = 0.0
    value[pairs[:2]] = 0.05
    sick = changed(predictor, table=replace(known.table, value=value))
    lethal = [known.table.sets()[i] for i in pairs[:2]]
    assert [tuple(p) for p in lethal_pairs(sick.checkpoint.known).tolist()] == lethal
    found = screened(sick, 3, top=3000, direction="low", exclude_synthetic_lethal=True)
    held = {frozenset(genes.split(",")) for genes in found["genes"]}
    names = predictor.genes.names
    assert not any({names[i] for i in pair} <= genes for genes in held for pair in lethal)
    assert found.attrs["left_out"] == {"holds a pair that is known to be lethal": 2 * 22 - 1}


def test_metabolic_genes(predictor: Predictor) -> None:
    with pytest.raises(ConfigError, match="no metabolism of tiny is known"):
        screened(predictor, 2, require=["metabolic"])
    metabolic = np.arange(24) < 2
    found = screened(
        changed(predictor, metabolic=metabolic), 2, top=400, direction="low", require=["metabolic"]
    )
    assert len(found) == 23 + 22


def in_two_conditions(predictor: Predictor) -> Predictor:
    """Return a predictor of two conditions; in the second only G001,G002 was measured, and is lethal."""
    known = predictor.checkpoint.known
    more = MutantTable.from_sets([(1, 2), (1, 2)], value=[0.0, -0.5], phenotype=[0, 1], condition=[1, 1])
    table = MutantTable.concatenate([known.table, more])
    part = np.append(known.part, [0, 0]).astype(np.uint8)
    checkpoint = replace(predictor.checkpoint, conditions=["YPD", "Gal"])
    return changed(Predictor(checkpoint), table=table, part=part)


def test_unmeasured_mutants_are_those_not_measured_in_the_condition(predictor: Predictor) -> None:
    several, options = in_two_conditions(predictor), {"top": 400, "direction": "low", "unmeasured": True}
    assert screened(several, 2, **options).empty
    found = screened(several, 2, condition="Gal", **options)
    assert found.attrs["left_out"] == {"measured before": 1}
    assert "G001,G002" not in set(found["genes"])


def test_a_mutant_of_another_kind_was_not_measured(predictor: Predictor) -> None:
    among = ["G001", "G002", "G003:overexpressed"]
    found = screened(predictor, among=among, top=5, direction="low", unmeasured=True)
    assert sorted(found["genes"]) == ["G001,G003", "G002,G003"]


def test_pairs_are_lethal_in_the_condition_of_the_screen(predictor: Predictor) -> None:
    several, among = in_two_conditions(predictor), ["G001", "G002", "G003"]
    options = {"among": among, "top": 5, "direction": "low", "exclude_synthetic_lethal": True}
    assert len(screened(several, **options)) == 3
    assert set(screened(several, condition="Gal", **options)["genes"]) == {"G001,G003", "G002,G003"}
    known = several.checkpoint.known
    assert lethal_pairs(known).tolist() == []
    assert lethal_pairs(known, 1).tolist() == [[1, 2]]


def test_an_epsilon_implies_no_lethal_pair_where_single_mutants_are_known_in_another_condition(
    predictor: Predictor,
) -> None:
    known = in_two_conditions(predictor).checkpoint.known
    value = known.table.value.copy()
    value[-2] = 1.0  # the fitness of the pair; its epsilon of -0.5 stays
    known = replace(known, table=replace(known.table, value=value))
    assert lethal_pairs(known, 1).tolist() == []
    singles = MutantTable.from_sets([(1,), (2,)], value=[0.6, 0.6], condition=[1, 1])
    table = MutantTable.concatenate([known.table, singles])
    part = np.append(known.part, [0, 0]).astype(np.uint8)
    assert lethal_pairs(replace(known, table=table, part=part), 1).tolist() == [[1, 2]]
