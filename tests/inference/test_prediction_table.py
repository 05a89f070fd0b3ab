"""What stands beside predictions: selected labels, essential genes that are absent, and crosses."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.command import wildtype
from tests.screened import tiny_grid
from wildtype.evidence.reference import PARTS, UNKNOWN_KIND
from wildtype.inference.prediction_table import expected_fitness
from wildtype.inference.predictor import Predictor
from wildtype.models.checkpoint import load_checkpoint
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.selection import Selection
from wildtype.tables import TAKEN

LIST = Selection(-0.12, 0.16, 0.05, -0.007, 0.046, "in another screen")
SENTENCE = LIST.sentence("epsilon")


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


def of_list(predictor: Predictor) -> Predictor:
    (phenotype,) = predictor.checkpoint.phenotypes
    return Predictor(replace(predictor.checkpoint, phenotypes=[{**phenotype, "selection": asdict(LIST)}]))


def knowing(predictor: Predictor, **known: Any) -> Predictor:
    return Predictor(replace(predictor.checkpoint, known=replace(predictor.checkpoint.known, **known)))


def without_deletions(predictor: Predictor) -> Predictor:
    """Return a predictor that knows no mutant without the essential gene G023."""
    known = predictor.checkpoint.known
    rows = np.flatnonzero(~((known.table.order == 1) & np.isin(np.arange(len(known.table)), [23])))
    assert len(rows) == len(known.table) - 1
    return knowing(predictor, table=known.table.take(rows), part=known.part[rows])


def test_a_run_of_a_list_says_so_beside_every_prediction(predictor: Predictor, tmp_path: Path) -> None:
    listed = of_list(predictor)
    frame = listed.predict([["G001", "G002"], ["G001"]])
    assert frame["note"].tolist() == [SENTENCE, "epsilon needs at least 2 genes"]
    np.testing.assert_array_equal(
        frame["epsilon"], predictor.predict([["G001", "G002"], ["G001"]])["epsilon"]
    )
    assert listed.remarks == (SENTENCE,)
    assert predictor.remarks == ()
    assert listed.screen(2, top=3, include=["linked"])["note"].tolist() == [SENTENCE] * 6
    listed.checkpoint.save(tmp_path / "c")
    assert load_checkpoint(tmp_path / "c").phenotypes == listed.checkpoint.phenotypes
    for words in (["predict", "--set", "G001,G002"], ["screen", "--among", "G001,G014", "--top", "1"]):
        said = wildtype(words[0], str(tmp_path / "c"), *words[1:], "--json")
        assert SENTENCE in said.stderr
        assert SENTENCE in said.stdout


def test_an_essential_gene_that_is_absent_is_lethal(predictor: Predictor) -> None:
    asked = [["G003", "G023:absent"], ["G003", "G023:reduced"], ["G001", "G002"]]
    unknown = without_deletions(predictor)
    frame = unknown.predict(asked, interval=0.9, as_="fitness")
    assert np.isnan(frame["epsilon"]).tolist() == [True, False, False]
    assert np.isnan(frame["epsilon_low"].iloc[0])
    assert np.isnan(frame["fitness_expected"].iloc[0])
    assert frame["note"].iloc[0] == ("G023 absent is lethal, no epsilon: G023:reduced gives its knock-down")
    assert "lethal" not in "".join(frame["note"].iloc[1:])
    np.testing.assert_array_equal(frame["epsilon"].iloc[1:], predictor.predict(asked)["epsilon"].iloc[1:])


def test_a_deletion_that_was_measured_alive_is_not_lethal(predictor: Predictor) -> None:
    frame = predictor.predict([["G003", "G023:absent"]])
    assert np.isfinite(frame["epsilon"]).all()
    assert "1 measured mutants live without it: G023:reduced" in frame["note"].iloc[0]
    known = predictor.checkpoint.known
    single = known.single_fitness.copy()
    single[23] = 0.0
    dead = knowing(predictor, single_fitness=single)
    assert np.isnan(dead.predict([["G003", "G023:absent"]])["epsilon"]).all()
    # A held-out row must not tell that the deletion lives.
    part = np.where(known.table.order == 1, PARTS.index("test"), known.part).astype(np.uint8)
    hidden = knowing(predictor, part=part)
    assert np.isnan(hidden.predict([["G003", "G023:absent"]])["epsilon"]).all()
    # Nor must a listed cross that is on no side of the split, in a run on a grid.
    table = known.table.take(np.flatnonzero(known.table.order == 2))
    table = replace(table, kind=np.zeros_like(table.kind))
    unused = np.full(len(table), PARTS.index("unused"), np.uint8)
    listed = knowing(predictor, table=table, part=unused, grid=tiny_grid(), effect="epsilon")
    assert "fitness" in known.phenotypes  # whose rows are no crosses, and may tell
    assert listed.checkpoint.known.deleted[23] == 23
    epsilon = np.flatnonzero(table.phenotype == 1)
    crosses = knowing(
        predictor, table=table.take(epsilon), part=unused[epsilon], grid=tiny_grid(), effect="epsilon"
    )
    assert np.isnan(crosses.predict([["G003", "G023:absent"]])["epsilon"]).all()


def test_a_fitness_is_predicted_of_every_mutant(predictor: Predictor) -> None:
    (phenotype,) = predictor.checkpoint.phenotypes
    alone = without_deletions(predictor)
    fitness = Predictor(replace(alone.checkpoint, phenotypes=[{**phenotype, "min_order": 1}]))
    frame = fitness.predict([["G003", "G023:absent"]])
    assert np.isfinite(frame["epsilon"]).all()
    assert frame["note"].tolist() == [""]


def test_a_pair_says_what_the_screen_has_of_it(predictor: Predictor) -> None:
    known, grid = predictor.checkpoint.known, tiny_grid()
    # Queries are G000 to G015 and G003:reduced, arrays G006 to G023; crosses of neighbours are unknown.
    sets = [["G002", "G010"], ["G002", "G020"], ["G010", "G011"], ["G002", "G001"], ["G003:reduced", "G010"]]
    sets += [["G002", "G010:reduced"], ["G002"], ["G002", "G010", "G020"]]
    listed = known.table.sets().index((2, 10), 24 + 276)
    rows = np.flatnonzero((known.table.order == 1) | (np.arange(len(known.table)) == listed))
    screened = knowing(
        predictor, table=known.table.take(rows), part=known.part[rows], grid=grid, effect="epsilon"
    )
    assert screened.predict(sets)["screened"].tolist() == [
        "listed", "screened, not listed", "unknown", "not crossed", "screened, not listed",
        "not crossed", "", "",
    ]  # fmt: skip
    assert "screened" not in predictor.predict(sets).columns
    # No phenotype may be called like one of them.
    columns = [*screened.predict(sets, as_="fitness"), *predictor.predict(sets, interval=0.9)]
    assert {name for name in columns if not name.startswith("epsilon")} <= TAKEN
    own = pd.DataFrame({"genes": ["G002,G020"], "value": [0.3]})
    with_own = screened.with_evidence(own).predict(sets[:2])
    assert with_own["screened"].tolist() == ["listed", "screened, not listed"]


def test_kinds_that_are_not_named_are_those_of_strains_of_a_grid(predictor: Predictor) -> None:
    known = predictor.checkpoint.known
    kinds = []
    for rows in (np.arange(len(known.table)), np.arange(5)):
        some = knowing(
            predictor, table=known.table.take(rows), part=known.part[rows], grid=tiny_grid(), effect="epsilon"
        )
        kinds.append(some.kinds.tolist())
    assert kinds[0] == kinds[1]
    assert kinds[0] == [0] * 24  # the screen has a deletion of the essential gene, too


def knowing_more(predictor: Predictor, *more: MutantTable) -> Predictor:
    known = predictor.checkpoint.known
    table = MutantTable.concatenate([known.table, *more])
    part = np.concatenate([known.part, np.zeros(len(table) - len(known.table), np.uint8)])
    return knowing(predictor, table=table, part=part)


def test_a_measured_value_is_that_of_the_same_kinds_of_perturbation(predictor: Predictor) -> None:
    sets = [
        ["G003", "G005"], ["G003:overexpressed", "G005:overexpressed"], ["G003:overexpressed", "G005"],
        ["G003", "G023"], ["G003", "G023:absent"],
    ]  # fmt: skip
    plain = predictor.predict(sets)["epsilon_measured"].to_numpy()
    # The essential gene's knock-down was measured, which says nothing of its deletion.
    assert np.isfinite(plain).tolist() == [True, False, False, True, False]
    # Two alleles of one kind are averaged.
    more = MutantTable.from_sets(
        [(3, 5), (3, 5)], kind=Kind.OVEREXPRESSED, value=[2.0, 4.0], phenotype=[1, 1]
    )
    measured = knowing_more(predictor, more).predict(sets)["epsilon_measured"]
    np.testing.assert_array_equal(measured, [plain[0], 3.0, np.nan, plain[3], np.nan])


def test_a_measured_value_is_that_of_the_same_doses(predictor: Predictor) -> None:
    dosed = MutantTable.from_sets(
        [(3, 5)], kind=Kind.OVEREXPRESSED, dose=[0.5, 2.0], value=[2.0], phenotype=[1]
    )
    other = replace(dosed, dose=np.array([0.5, 4.0], np.float32))
    known = knowing_more(predictor, dosed)
    measured = [
        known.predict_table(table)["epsilon_measured"].iloc[0]
        for table in (dosed, other, replace(dosed, dose=None))
    ]
    np.testing.assert_array_equal(measured, [2.0, np.nan, np.nan])


def test_a_kind_of_perturbation_that_no_training_row_has_is_noted(predictor: Predictor) -> None:
    notes = predictor.predict([["G001:overexpressed", "G002"], ["G001", "G023"], ["G001", "G002"]])["note"]
    assert notes.tolist() == ["no training row has this kind of perturbation: overexpressed", "", ""]
    more = MutantTable.from_sets([(3, 5)], kind=Kind.OVEREXPRESSED, value=[1.0], phenotype=[1])
    assert knowing_more(predictor, more).predict([["G001:overexpressed", "G002"]])["note"].tolist() == [""]


def test_expected_fitness_takes_single_mutants_of_the_same_kind_only(predictor: Predictor) -> None:
    sets = [["G007:overexpressed"], ["G007"], ["G003", "G007:overexpressed"]]
    frame = predictor.predict(sets, as_="fitness")
    assert np.isfinite(frame["fitness_expected"]).tolist() == [False, True, False]
    reason = "single-mutant fitness of G007 overexpressed is not known"
    assert [reason in note for note in frame["note"]] == [True, False, True]
    more = MutantTable.from_sets([(7,)], kind=Kind.OVEREXPRESSED, value=[1.25], sd=[0.1])
    found = knowing_more(predictor, more).predict(sets, as_="fitness")
    assert found["fitness_expected"].iloc[0] == 1.25
    assert found["fitness_expected_sd"].iloc[0] == pytest.approx(0.1)
    single = predictor.checkpoint.known.single_fitness
    assert found["fitness_expected"].iloc[2] == pytest.approx(found["epsilon"].iloc[2] + 1.25 * single[3])
    assert not found["note"].str.contains("is not known").any()


def test_expected_fitness_comes_from_measured_single_mutants_where_no_list_has_it(
    predictor: Predictor,
) -> None:
    unknown = np.full_like(predictor.checkpoint.known.single_fitness, np.nan)
    bare = knowing(predictor, single_fitness=unknown, single_fitness_sd=unknown)
    sets = [["G003", "G005"], ["G007"]]
    np.testing.assert_allclose(
        bare.predict(sets, as_="fitness")["fitness_expected"],
        predictor.predict(sets, as_="fitness")["fitness_expected"],
    )


def test_held_out_rows_say_what_kind_single_fitness_is_of(predictor: Predictor) -> None:
    """A gene of which only knock-downs were left in training had the fitness of its deletion."""
    known, gene = predictor.checkpoint.known, 7
    table = known.table
    kind = np.where(table.gene == gene, Kind.ABSENT, table.kind).astype(np.uint8)
    part = known.part.copy()
    part[np.unique(table.row[table.gene == gene])] = PARTS.index("test")
    down = MutantTable.from_sets([(gene,)], kind=Kind.REDUCED, value=[np.nan])
    changed = replace(known, table=replace(table, kind=kind), part=part)
    other = Predictor(replace(predictor.checkpoint, known=changed))
    more = knowing_more(other, down)
    single = known.single_fitness[gene]
    found = more.predict([["G007:absent"], ["G007:reduced"]], as_="fitness")["fitness_expected"]
    assert found[0] == pytest.approx(single)
    assert np.isnan(found[1])


def test_single_fitness_is_of_the_kind_that_is_stored_with_it(predictor: Predictor) -> None:
    """It was inferred from the mutants of the dataset, which may be of another kind."""
    known = predictor.checkpoint.known
    stored = np.full(len(known.essential), UNKNOWN_KIND, np.uint8)
    stored[7] = Kind.OVEREXPRESSED
    changed = knowing(predictor, single_fitness_kind=stored).checkpoint.known
    asked = predictor.table([["G007:overexpressed"], ["G003"]])
    bare = replace(changed, table=known.table.take([]), part=known.part[:0])
    for one in (changed, bare):
        np.testing.assert_array_equal(one.single_fitness_of(asked)[0], known.single_fitness[[7, 3]])
    assert np.isnan(known.single_fitness_of(asked)[0][0])
    assert np.isnan(bare.single_fitness_of(predictor.table([["G007"]]))[0][0])


def test_expected_fitness_of_another_condition_needs_single_mutants_measured_there(
    predictor: Predictor,
) -> None:
    there = Predictor(replace(predictor.checkpoint, conditions=["YPD", "Gal"]))
    table = there.table([["G003", "G005"], ["G007"]])
    table.condition[1] = 1
    found = there.predict_table(table, as_="fitness")
    assert np.isfinite(found["fitness_expected"]).tolist() == [True, False]
    assert found["note"].iloc[1].endswith("single-mutant fitness of G007 is not known in condition Gal")
    more = MutantTable.from_sets([(7,)], value=[0.75], condition=[1])
    known = knowing_more(there, more).predict_table(table, as_="fitness")
    assert known["fitness_expected"].iloc[1] == 0.75


def test_expected_fitness_of_three_genes_takes_pairs_of_the_same_kinds(predictor: Predictor) -> None:
    (phenotype,) = predictor.checkpoint.phenotypes
    checkpoint = replace(
        predictor.checkpoint,
        phenotypes=[{**phenotype, "name": "tau", "min_order": 3}],
        metrics={"validation": {"tau": {"rmse": 0.1}}},
    )
    table = predictor.table(
        [["G001", "G002", "G003"], ["G001", "G002", "G023"], ["G001", "G002", "G023:absent"]]
    )
    found = expected_fitness(checkpoint, table, np.zeros((3, 1)))
    # The single mutant of the essential gene was measured as a deletion, its pairs as knock-downs.
    assert np.isfinite(found.fitness).tolist() == [True, False, False]
    assert found.reasons == {
        1: "single-mutant fitness of G023 reduced is not known",
        2: "fitness of one of its pairs is not known",
    }


def test_predictions_and_screens_name_the_condition_where_there_are_several(predictor: Predictor) -> None:
    several = Predictor(replace(predictor.checkpoint, conditions=["YPD", "Gal"]))
    frame = several.predict([["G001", "G002"]])
    assert frame["condition"].tolist() == ["YPD"]
    assert frame.columns.get_loc("condition") == frame.columns.get_loc("kinds") + 1
    assert several.predict([["G001", "G002"]], condition="Gal")["condition"].tolist() == ["Gal"]
    found = several.screen(2, ["G001", "G002"], top=1, direction="low", include=["linked"], condition="Gal")
    assert found["condition"].tolist() == ["Gal"]
    assert "condition" not in predictor.predict([["G001", "G002"]]).columns
