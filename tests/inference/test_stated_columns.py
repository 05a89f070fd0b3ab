"""Kinds, doses and conditions that a table states row by row are predicted, by every way in."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.cli.evidence import with_evidence
from wildtype.errors import ConfigError, GeneSetError, SourceError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference import prediction_file
from wildtype.inference.prediction_shards import model_hash
from wildtype.inference.predictor import Predictor
from wildtype.inference.screening.screen import ScreenRequest, make_screen, named_members
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex


@pytest.fixture(scope="module")
def dosed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on mutants of two conditions, those of the second overexpressed in doses."""
    folder = tmp_path_factory.mktemp("runs") / "dosed"
    words = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=2",
             "training.batch_size=64", "model.trees.bags=1", "baselines=[mean]", f"run.folder={folder}",
             "run.progress=false", "run.replicates=10", "data.name=tiny-growth"]  # fmt: skip
    whole = tiny_dataset()
    more = whole.table.take(whole.table.phenotype == 1)
    draw = np.random.default_rng(0)
    more = replace(
        more,
        kind=np.full_like(more.kind, Kind.OVEREXPRESSED),
        dose=draw.uniform(1, 8, len(more.gene)).astype(np.float32),
        condition=np.ones(len(more), np.int64),
        value=more.value + 1,
    )
    table = MutantTable.concatenate([whole.table, more])
    train(compose(words), dataset=replace(whole, table=table, conditions=("30 C", "heat")))
    return folder


@pytest.fixture(scope="module")
def dosed(dosed_run: Path) -> Predictor:
    return wt.load(dosed_run)


PLAN = pd.DataFrame(
    {
        "genes": ["G002;G001", "G003,G004", "G005 G006", "", "G007,G008", "G001,G002"],
        "kind": ["overexpressed;reduced", "overexpressed", "", None, "absent", "reduced;overexpressed"],
        "dose": ["4;", None, "2;0.1", "", ",3", ";4"],
        "condition": ["heat", "heat", "", "30 C", None, "heat"],
    }
)
WRITTEN = [
    ["G002:overexpressed@4", "G001:reduced"],
    ["G003:overexpressed", "G004:overexpressed"],
    ["G005:@2", "G006:@0.1"],
    [],
    ["G007:absent", "G008:absent@3"],
    ["G001:reduced", "G002:overexpressed@4"],
]


def test_columns_predict_what_written_sets_predict(dosed: Predictor) -> None:
    found = dosed.predict(PLAN, interval=0.9)
    assert found["condition"].tolist() == ["heat", "heat", "30 C", "30 C", "30 C", "heat"]
    assert found["kinds"][0] == "reduced,overexpressed"
    middle = dosed.checkpoint.assumed_doses[Kind.OVEREXPRESSED]
    assert found["doses"].tolist() == [",4.0", f"{middle!s},{middle!s}", "2.0,0.1", "", ",3.0", ",4.0"]
    table = dosed.table(WRITTEN)
    table.condition[:] = [1, 1, 0, 0, 0, 1]
    for name, column in dosed.predict_table(table, interval=0.9).items():
        np.testing.assert_array_equal(found[name], column)
    assert found["epsilon"][0] == found["epsilon"][5]
    plain = dosed.predict(PLAN[["genes"]])["epsilon"]
    assert (found["epsilon"] != plain)[[0, 1, 2, 4, 5]].all()
    assert found.loc[:, "genes":"condition_given"].columns.tolist() == [
        "genes", "kind_given", "dose_given", "condition_given",
    ]  # fmt: skip


@pytest.mark.parametrize("end", [".csv", ".parquet"])
def test_predictions_given_back_have_the_same_bits(end: str, dosed_run: Path, tmp_path: Path) -> None:
    first, again = tmp_path / f"first{end}", tmp_path / f"again{end}"
    PLAN.to_csv(tmp_path / "plan.csv", index=False)
    for plan, output in ((tmp_path / "plan.csv", first), (first, again)):
        said = wildtype("predict", str(dosed_run), "--file", str(plan), "-o", str(output))
        assert said.returncode == 0, said.stderr
    read = pd.read_csv if end == ".csv" else pd.read_parquet
    one, two = read(first), read(again)
    for name in ("genes", "kinds", "doses", "condition", "epsilon"):
        pd.testing.assert_series_equal(one[name], two[name])


def test_a_screen_given_back_has_its_predictions(dosed: Predictor) -> None:
    among = ["G000:overexpressed", "G002", "G004:overexpressed"]
    every = ["lethal", "linked", "overlapping", "dubious"]
    screen = dosed.screen(among=among, direction="high", condition="heat", include=every)
    again = dosed.predict(screen)
    assert set(screen["kinds"]) == {
        "overexpressed,absent", "overexpressed,overexpressed", "absent,overexpressed",
    }  # fmt: skip
    for name in ("genes", "kinds", "doses", "condition", "epsilon"):
        pd.testing.assert_series_equal(screen[name], again[name])
    assert screen["epsilon"].is_monotonic_decreasing


def test_blocks_and_shards_make_the_table_of_one_process(
    dosed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, one, many = (tmp_path / f"{name}.csv" for name in ("plan", "one", "many"))
    # No dose in the first blocks: the table of each block must be that of a model of doses all the same.
    pd.concat([PLAN.drop(columns="dose")] * 3 + [PLAN]).to_csv(plan, index=False)
    options = ("--file", str(plan), "--set", "G001,G002:overexpressed@2")
    said = wildtype("predict", str(dosed_run), *options, "-o", str(one))
    assert said.returncode == 0, said.stderr
    monkeypatch.setattr(prediction_file, "BLOCK", 4)
    for number in range(2):
        shard = ("--shards", "2", "--shard", str(number))
        said = wildtype("predict", str(dosed_run), *options, *shard, "-o", str(many))
        assert said.returncode == 0, said.stderr
    said = wildtype("predict", "--merge", f"{many}.shards", "-o", str(many))
    assert said.returncode == 0, said.stderr
    whole, merged = pd.read_csv(one), pd.read_csv(many)
    pd.testing.assert_frame_equal(whole, merged, check_exact=False, rtol=1e-5)
    pd.testing.assert_frame_equal(whole.select_dtypes("object"), merged.select_dtypes("object"))


def test_a_condition_that_is_not_known_is_refused_with_the_row(dosed_run: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("genes,condition\nG001 G002,heat\nG003 G004,cold\n")
    said = wildtype("predict", str(dosed_run), "--file", str(plan))
    assert_one_sentence(said, "row 2: the model knows no condition 'cold'")


def test_a_condition_beside_another_one_is_refused(dosed_run: Path, dosed: Predictor, tmp_path: Path) -> None:
    plan, output = tmp_path / "plan.csv", tmp_path / "out.csv"
    plan.write_text("genes,condition\nG001 G002,\nG003 G004,heat\n")
    command = ("predict", str(dosed_run), "--file", str(plan), "-o", str(output), "--condition")
    said = wildtype(*command, "30 C")
    assert_one_sentence(said, "row 2: column 'condition' states 'heat', and '30 C' is requested")
    assert not output.exists()
    assert wildtype(*command, "heat").returncode == 0
    assert pd.read_csv(output)["condition"].tolist() == ["heat", "heat"]
    with pytest.raises(ConfigError, match="'30 C' is requested"):
        dosed.predict(pd.read_csv(plan), condition="30 C")


def test_doses_are_refused_by_a_model_without_them(tiny_run: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("genes,kind,dose\nG001 G002,,\nG003 G004,reduced,1;2\n")
    said = wildtype("predict", str(tiny_run), "--file", str(plan))
    assert_one_sentence(
        said, "row 2 states dose '1' in column 'dose'", "no mutant that the model was trained"
    )
    said = wildtype("predict", str(tiny_run), "--set", "G001:overexpressed@4,G002")
    assert_one_sentence(said, "row 1 states a dose, 'G001:overexpressed@4'")
    plan.write_text("genes,kind,dose\nG001 G002,,\nG003 G004,reduced,\n")
    assert wildtype("predict", str(tiny_run), "--file", str(plan)).returncode == 0


def test_a_screen_takes_no_doses(dosed: Predictor) -> None:
    with pytest.raises(GeneSetError, match="candidate 2 states a dose, 'G002:overexpressed@2', and"):
        dosed.screen(among=["G001", "G002:overexpressed@2"])


def test_latents_are_those_of_the_stated_mutants(dosed_run: Path, dosed: Predictor, tmp_path: Path) -> None:
    plan, output = tmp_path / "plan.csv", tmp_path / "out.csv"
    PLAN.to_csv(plan, index=False)
    frame = dosed.embed(PLAN, latent="z_S")
    assert frame["kinds"][0] == "reduced,overexpressed"
    np.testing.assert_array_equal(frame.iloc[0, 2:], frame.iloc[5, 2:])
    assert (frame.iloc[:, 2:] != dosed.embed(PLAN[["genes"]], latent="z_S").iloc[:, 2:]).loc[0].any()
    said = wildtype("embed", str(dosed_run), "--file", str(plan), "--latent", "z_S", "-o", str(output))
    assert said.returncode == 0, said.stderr
    assert pd.read_csv(output)["kinds"][0] == "reduced,overexpressed"


def test_queries_of_a_file_are_told_apart_by_the_organism(dosed: Predictor, tmp_path: Path) -> None:
    """Kinds were written behind the parts of a gene whose name holds a comma."""
    comma = Predictor(dosed.core)
    comma.core = copy(dosed.core)
    names = tuple("ARG5,6" if name == "G001" else name for name in dosed.genes.names)
    comma.core.genes = GeneIndex(list(names), organism="tiny")
    path = tmp_path / "queries.csv"
    path.write_text('genes,kind,condition\n"ARG5,6",reduced,\n"ARG5,6;G002",absent;reduced,30 C\n')
    assert named_members(comma.core, str(path), "query") == [
        ["ARG5,6:reduced"], ["ARG5,6:absent", "G002:reduced"],
    ]  # fmt: skip
    path.write_text("genes,condition\nG003,\nG004,heat\n")
    assert named_members(dosed.core, str(path), "query", condition="heat") == [
        ["G003:absent"], ["G004:absent"],
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"query 2: column 'condition' states 'heat', and .* is '30 C'"):
        named_members(dosed.core, str(path), "query")
    assert named_members(dosed.core, "G001:reduced,G002", "query") == [["G001:reduced", "G002"]]


def test_predictions_name_the_genes_that_a_screen_leaves_out(dosed_run: Path, tmp_path: Path) -> None:
    """`--exclude` took the kinds of a table of predictions for a part of the names."""
    left, found = tmp_path / "left.csv", tmp_path / "found.csv"
    wt.load(dosed_run).predict([["G000", "G001"], ["G003"]]).to_csv(left, index=False)
    among = tmp_path / "among.csv"
    among.write_text("genes,kind\nG000,absent\nG001,reduced\nG002,reduced\nG004,absent\n")
    screen = ("screen", str(dosed_run), "--among", str(among), "-o", str(found),
              "--include", "lethal,linked,overlapping,dubious")  # fmt: skip
    said = wildtype(*screen, "--exclude", str(left))
    assert said.returncode == 0, said.stderr
    read = pd.read_csv(found)
    assert set(zip(read.genes, read.kinds, strict=True)) == {("G002,G004", "reduced,absent")}
    said = wildtype(*screen, "--require", str(left))
    assert said.returncode == 0, said.stderr
    assert set(pd.read_csv(found).genes) == {
        "G000,G001", "G000,G002", "G000,G004", "G001,G002", "G001,G004",
    }  # fmt: skip


OWN = "genes,kind,dose,value,phenotype,condition\n{}"
DOSED = "G000;G001,overexpressed,{};4,-0.3,epsilon,heat\nG002;G003,overexpressed,NA;NA,0.2,epsilon,\n"


def test_evidence_has_the_doses_and_conditions_that_it_states(dosed: Predictor, tmp_path: Path) -> None:
    """The command line dropped doses, and refused an empty condition under another name."""
    given = []
    for dose in "23":
        path = tmp_path / f"{dose}.csv"
        path.write_text(OWN.format(DOSED.format(dose)))
        given.append(with_evidence(dosed, path))
    asked = [[f"G000:overexpressed@{dose}", "G001:overexpressed@4"] for dose in "23"]
    for number, one in enumerate(given):
        found = one.predict(asked, condition="heat")["epsilon_measured"]
        assert found[number] == pytest.approx(-0.3)
        assert np.isnan(found[1 - number])
        other = one.predict([["G002:overexpressed", "G003:overexpressed"]])["epsilon_measured"]
        assert other[0] == pytest.approx(0.2)
    frame = pd.read_csv(tmp_path / "2.csv", keep_default_na=False)
    expected = dosed.with_evidence(frame).predict(asked, condition="heat")
    pd.testing.assert_frame_equal(given[0].predict(asked, condition="heat"), expected)


def test_evidence_that_differs_in_a_dose_is_other_evidence(
    dosed_run: Path, dosed: Predictor, tmp_path: Path
) -> None:
    """A stored state or shard of the one was taken for that of the other."""
    marks = []
    for dose in "23":
        path = tmp_path / f"{dose}.csv"
        path.write_text(OWN.format(DOSED.format(dose)))
        core = with_evidence(dosed, path).core
        screen, _ = make_screen(core, ScreenRequest(order=2))
        marks.append((model_hash(dosed_run, core), screen.fingerprint(core)))
    assert all(one != two for one, two in zip(*marks, strict=True))


def test_tables_without_a_column_of_doses_do_not_shift_those_of_trees(
    dosed: Predictor, tiny_run: Path
) -> None:
    """Rows of another dataset, and another organism's, came without the column that the trees had."""
    table = dosed.table([["G001", "G002"], ["G003:overexpressed"]])
    assert table.dose is not None
    without = replace(table, dose=None)
    np.testing.assert_array_equal(dosed.checkpoint.predict(without), dosed.checkpoint.predict(table))
    moved = replace(
        dosed.checkpoint,
        doses_of_training=dosed.checkpoint.assumed_doses,
        known=replace(
            dosed.checkpoint.known, table=dosed.checkpoint.known.table.take([]), part=np.zeros(0, np.uint8)
        ),
    )
    np.testing.assert_array_equal(moved.predict(without), moved.predict(table))
    plain = wt.load(tiny_run)
    table = plain.table([["G001", "G002"]])
    more = replace(table, dose=np.ones(len(table.gene), np.float32))
    np.testing.assert_array_equal(plain.checkpoint.predict(more), plain.checkpoint.predict(table))


def test_doses_beyond_those_of_training_are_noted(dosed: Predictor) -> None:
    low, high = dosed.core.trained_doses[Kind.OVEREXPRESSED]
    assert 1 <= low < high <= 8
    assert np.isnan(dosed.core.trained_doses[Kind.ABSENT][0])
    sets = [["G003:overexpressed@40"], ["G003:absent@2", "G004:overexpressed@2"], ["G003:overexpressed"],
            ["G003"]]  # fmt: skip
    notes = dosed.predict(sets, condition="heat")["note"]
    assert f"training rows of kind overexpressed have doses {low:g} to {high:g}" in notes[0]
    assert "no training row of kind absent has a dose" in notes[1]
    assert not notes[2:].str.contains("dose").any()


def test_a_dose_that_is_not_stated_is_the_middle_one_of_training(dosed: Predictor) -> None:
    """Every overexpression in training had a dose: without one, it was like nothing that the model knew."""
    trained = dosed.trained
    assert trained.dose is not None
    doses = np.sort(trained.dose[trained.kind == Kind.OVEREXPRESSED])
    middle = doses[(len(doses) - 1) // 2]
    written = [[f"G003:overexpressed@{middle!s}", "G004"], [f"G003:overexpressed@{middle!s}"]]
    plain = [["G003:overexpressed", "G004"], ["G003:overexpressed"]]
    pd.testing.assert_frame_equal(dosed.predict(plain), dosed.predict(written))
    assert dosed.predict(plain)["doses"].tolist() == [f"{middle!s},", f"{middle!s}"]
    among, every = ["G003:overexpressed", "G004"], ["lethal", "linked", "overlapping", "dubious"]
    screen = dosed.screen(among=among, direction="low", include=every)
    assert screen["doses"].tolist() == [f"{middle!s},"]
    assert screen["epsilon"][0] == dosed.predict(written)["epsilon"][0]
    given = dosed.with_evidence(pd.DataFrame({"genes": [plain[0]], "epsilon": [0.1]}))
    assert given.predict(written)["epsilon_measured"][0] == pytest.approx(0.1)
    measured = given.screen(among=among, direction="low", include=every, unmeasured=True)
    assert measured.attrs["left_out"] == {"measured before": 1}


def test_evidence_of_an_interaction_has_two_genes(dosed: Predictor) -> None:
    """An epsilon of one gene, what a lost gene leaves of a pair, moved predictions."""
    frame = pd.DataFrame({"genes": ["G001,G002", "G003"], "epsilon": [0.1, -0.2]})
    with pytest.raises(
        SourceError, match="evidence row 2: epsilon needs at least 2 genes, and the mutant has 1"
    ):
        dosed.with_evidence(frame)


def test_a_table_is_read_from_standard_input_as_from_a_file(dosed_run: Path, tmp_path: Path) -> None:
    plan, ways = tmp_path / "plan.csv", []
    PLAN.to_csv(plan, index=False)
    for name, stdin in ((str(plan), ""), ("-", plan.read_text())):
        output = tmp_path / f"{len(ways)}.csv"
        said = wildtype("predict", str(dosed_run), "--file", name, "-o", str(output), stdin=stdin)
        assert said.returncode == 0, said.stderr
        ways.append(pd.read_csv(output))
    pd.testing.assert_frame_equal(*ways)
    said = wildtype("predict", str(dosed_run), "--set", "G001", "--file", "-", stdin=plan.read_text())
    assert said.returncode == 0, said.stderr
    said = wildtype("predict", str(dosed_run), "--file", "-", stdin="genes,note\nG001,G002,x\n")
    assert_one_sentence(said, "the first row of standard input has 3 cells ('G001,G002,x') and the header 2")
    said = wildtype("predict", str(dosed_run), "--file", "-", stdin="G001,G002\nG003\n")
    assert said.returncode == 0, said.stderr
