"""Own data into the store and a dataset: nothing is replaced unasked, and nothing is lost on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from tests.sources.user_tables.tables import write, yeast
from wildtype.datasets import Dataset
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication, Study
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import read_dataset, save_dataset
from wildtype.datasets.store import Query, Store, store_path
from wildtype.errors import DatasetError, SourceError
from wildtype.mutants.selection import Selection
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import dataset_folder, load_dataset, organism_folder
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.register import NOTE, check_name, register, selected_phenotypes
from wildtype.sources.user_tables.summary import summarise
from wildtype.sources.user_tables.table import Reading, read_table
from wildtype.sources.user_tables.vocabulary import Columns, template

TEXT = """\
genes,value,kind,condition,replicate,sd
SGS1;SRS2,0.40,,YPD,a,0.1
SGS1;SRS2,0.44,,YPD,b,0.1
SGS1;SRS2,0.60,,heat,a,0.1
CDC28,0.80,reduced,YPD,a,
CDC28,0.00,absent,YPD,a,
crtE;HO,1.20,added;absent,YPD,a,
HPR5,0.9,,YPD,a,
HPR5,0.9,,YPD,a,
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))


def read(folder: Path, text: str = TEXT, **options: str) -> tuple[Measurements, ReadReport]:
    readings: list[ReadReport] = []
    path = write(folder, text)
    m = read_table(path, yeast(), Layout(phenotype="fitness", **options), collect=readings.append)  # type: ignore[arg-type]
    return m, readings[0]


def imported(folder: Path, text: str = TEXT, *, replace: bool = False) -> Dataset:
    return register(*read(folder, text), yeast(), replace=replace)


def rows_of(dataset: Dataset) -> dict[tuple[str, str, str], float]:
    frame = dataset.to_pandas()
    keys = zip(frame["genes"], frame["kinds"], frame["condition"], strict=True)
    return {key: round(value, 6) for key, value in zip(keys, frame["value"].tolist(), strict=True)}


def test_replicates_are_apart_in_the_store_and_merged_in_the_dataset(tmp_path: Path) -> None:
    dataset = imported(tmp_path)
    assert rows_of(dataset) == {
        ("YMR190C,YJL092W", "absent,absent", "YPD"): 0.42,
        ("YMR190C,YJL092W", "absent,absent", "heat"): 0.6,
        ("YBR160W", "reduced", "YPD"): 0.8,
        ("YBR160W", "absent", "YPD"): 0.0,
        ("YJL092W", "absent", "YPD"): 0.9,
        ("YDL227C,crtE", "absent,added", "YPD"): 1.2,
    }
    assert dataset.excluded == {
        "merged: duplicate entry (same value and sd)": 1,
        "merged: replicates of one mutant": 1,
    }
    assert dataset.notes[0] == NOTE
    assert dataset.citation == "own data: my.csv"
    assert "no noise ceiling: " in dataset.noise
    with Store.open(store_path(), read_only=True) as store:
        (study,) = store.studies()
        assert (study.name, study.rows, study.readings[0].kept) == ("my", 8, 8)
        assert sorted(store.select().value) == sorted(read(tmp_path)[0].value)
    save_organism(yeast(), organism_folder("yeast"))
    assert load_dataset("my").sha256 == dataset.sha256


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    first = imported(tmp_path)
    header, *rows = TEXT.splitlines()
    second = imported(tmp_path, "\n".join([header, *reversed(rows)]) + "\n", replace=True)
    assert second.sha256 == first.sha256
    np.testing.assert_array_equal(second.table.value, first.table.value)


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    first = imported(tmp_path)
    with pytest.raises(DatasetError, match="there is own data called 'my' already: take --replace"):
        imported(tmp_path, "genes,value\nHO,1\n")
    assert read_dataset(dataset_folder("my"), yeast()).sha256 == first.sha256
    second = imported(tmp_path, "genes,value\nHO,1\n", replace=True)
    assert len(second) == 1
    assert read_dataset(dataset_folder("my"), yeast()).sha256 == second.sha256
    with Store.open(store_path(), read_only=True) as store:
        assert [study.rows for study in store.studies()] == [1]


def cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what an import leaves that ends between its rows and its dataset."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "wildtype.sources.user_tables.register.save_dataset", Mock(side_effect=KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            imported(folder)
    assert not dataset_folder("my").exists()


def test_an_import_that_was_cut_off_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(tmp_path, monkeypatch)
    check_name("my")
    dataset = imported(tmp_path)
    assert read_dataset(dataset_folder("my"), yeast()).sha256 == dataset.sha256
    with Store.open(store_path(), read_only=True) as store:
        assert [study.rows for study in store.studies()] == [8]


def test_rows_of_another_table_are_not_replaced_to_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(tmp_path, monkeypatch)
    with pytest.raises(DatasetError, match="another table as 'my' was cut off, .* take --replace"):
        imported(tmp_path, "genes,value\nHO,1\n")
    with Store.open(store_path(), read_only=True) as store:
        assert [study.rows for study in store.studies()] == [8]
    assert len(imported(tmp_path, "genes,value\nHO,1\n", replace=True)) == 1


def test_who_comes_second_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = imported(tmp_path)
    monkeypatch.setattr(
        "wildtype.sources.user_tables.register.check_name", Mock()
    )  # both found the name free
    with pytest.raises(DatasetError, match="there is own data called 'my' already"):
        imported(tmp_path)
    assert read_dataset(dataset_folder("my"), yeast()).sha256 == first.sha256


@pytest.mark.parametrize("name", ["ecoli-core-growth", "string", "queries"])
def test_names_of_published_data_are_kept_for_them(name: str) -> None:
    with pytest.raises(DatasetError, match="is a name of published data"):
        check_name(name, replace=True)


def test_a_published_study_in_the_store_is_not_replaced(tmp_path: Path) -> None:
    published = Study(name="my", publication=Publication(citation="A 2024"), organism="yeast", licence="CC0")
    m, _ = read(tmp_path)
    with Store.create(store_path()) as store:
        store.ingest(Measurements.from_records([published], m.records()))
    with pytest.raises(DatasetError, match="is a name of published data"):
        imported(tmp_path, replace=True)


def test_a_table_without_a_usable_row_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no row is left of 1 measurements"):
        imported(tmp_path, "genes,value\nwt,1\n")
    assert not store_path().exists()
    assert not dataset_folder("my").exists()


def test_a_dataset_made_by_a_query_is_not_replaced(tmp_path: Path) -> None:
    save_dataset(replace(imported(tmp_path), name="asked", notes=()), dataset_folder("asked"))
    with pytest.raises(DatasetError, match="'asked' is a dataset made by a query"):
        check_name("asked", replace=True)


def test_the_summary_counts_everything(tmp_path: Path) -> None:
    m, reading = read(tmp_path, TEXT.replace("HPR5,0.9,,YPD,a,", "CDK1,0.9,,YPD,,", 1))
    assert summarise(m, yeast(), reading) == {
        "name": "my",
        "organism": "yeast",
        "file": "my.csv",
        "rows": 8,
        "left_out": {},
        "read_as": [],
        "mutants": 5,
        "rows_by_order": {"1": 4, "2": 4},
        "genes": 5,
        "foreign_genes": ["crtE"],
        "perturbations_by_kind": {"deletion": 10, "reduced expression": 1, "addition": 1},
        "phenotypes": [
            {
                "name": "fitness",
                "unit": "relative to wild type = 1",
                "rows": 8,
                "lowest": 0.0,
                "highest": 1.2,
                "with_sd": 3,
            }
        ],
        "rows_by_condition": {"YPD": 7, "heat": 1},
        "rows_by_replicate": {"not stated": 1, "a": 6, "b": 1},
        "measured_again": 2,
        "remarks": [
            "rows that name a gene by an older name or alias: 2",
            "added genes that organism 'yeast' does not have, and of which only the name is known "
            "(--added-genes describes them): 1",
            "rows that delete a gene that is listed as essential (is its kind really absent?): 2",
        ],
    }
    m, reading = read(tmp_path)
    remark = "rows that repeat another row, value and replicate alike, and count once: 1"
    assert remark in summarise(m, yeast(), reading)["remarks"]


def test_the_template_can_be_imported(tmp_path: Path) -> None:
    path = write(tmp_path, template(), "template.csv")
    m = read_table(path, yeast())
    assert len(m) == 6
    assert sorted(p.name for p in m.phenotypes) == ["epsilon", "fitness"]
    assert all(line.isascii() and len(line) <= 110 for line in template().splitlines())


def of_list(folder: Path, cut: float = 0.1) -> str:
    """Return a table of epsilon of pairs in which no value is nearer to 0 than the cut-off."""
    names = yeast().genes.names
    rows = [f"{a};{b},{(-1) ** i * (cut + 0.004 * i):.4f}" for i, (a, b) in enumerate(combinations(names, 2))]
    return "genes,epsilon\n" + "\n".join(rows[:40]) + "\n"


def test_a_list_that_nobody_declared_is_named(tmp_path: Path) -> None:
    readings: list[ReadReport] = []
    columns = Columns(value="epsilon")
    m = read_table(write(tmp_path, of_list(tmp_path)), yeast(), Layout(columns), collect=readings.append)
    remarks = summarise(m, yeast(), readings[0])["remarks"]
    (remark,) = [text for text in remarks if "no epsilon lies between" in text]
    assert "between -0.104 and 0.1" in remark
    assert "--listed-below" in remark
    chosen = Selection(negative=-0.104, positive=0.1)
    selected = selected_phenotypes(m, chosen)
    assert selected == ("epsilon",)
    assert summarise(m, yeast(), readings[0], selected)["remarks"] == [
        text for text in remarks if text != remark
    ]
    register(m, readings[0], yeast(), selection=chosen)
    (epsilon,) = read_dataset(dataset_folder("my"), yeast()).phenotypes
    assert epsilon.selection == chosen
    with pytest.raises(SourceError, match=r"row 2: epsilon is -0\.104, and only values listed at <= -0\.2"):
        register(m, readings[0], yeast(), replace=True, selection=Selection(negative=-0.2, positive=0.05))


def test_cut_offs_of_several_phenotypes_are_refused(tmp_path: Path) -> None:
    text = "genes,value,phenotype\nSGS1,0.4,fitness\nHO,0.3,titre\n"
    readings: list[ReadReport] = []
    m = read_table(write(tmp_path, text), yeast(), collect=readings.append)
    with pytest.raises(SourceError, match="import one phenotype at a time"):
        selected_phenotypes(m, Selection(negative=-0.1))


def reading_of(path: Path, layout: Layout) -> tuple[Measurements, ReadReport, Reading]:
    reports: list[ReadReport] = []
    readings: list[Reading] = []
    m = read_table(path, yeast(), layout, collect=reports.append, tell=readings.append)
    return m, reports[0], readings[0]


def test_replicates_in_columns_become_mean_and_sd(tmp_path: Path) -> None:
    path = write(tmp_path, "genes,rep1,rep2,rep3\nSGS1,0.5,0.5,0.8\nSRS2,1,1,1\nHO,2,,\n")
    m, report, reading = reading_of(path, Layout(phenotype="fitness"))
    assert reading.replicates
    frame = register(m, report, yeast(), policies=reading.policies).to_pandas().set_index("genes")
    np.testing.assert_allclose(frame["value"], [0.6, 1.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(frame["sd"], [math.sqrt(0.03), 0.0, math.nan], rtol=1e-6)
    with Store.open(store_path(), read_only=True) as store:
        assert len(store.select(Query().study("my"))) == 7  # every replicate, for ceilings


WIDE = "genes,rep1,rep2,rep3\nSGS1,0.5,0.5,0.8\nSRS2,1,1,1\nHO,2,,\nwt,1,1,1\n"
LONG = "genes,value,replicate\n" + "".join(
    f"{gene},{value},{label}\n"
    for gene, values in (("SGS1", (0.5, 0.5, 0.8)), ("SRS2", (1, 1, 1)), ("HO", (2,)), ("wt", (1, 1, 1)))
    for label, value in enumerate(values, 1)
)


@pytest.mark.parametrize("expectation", ["", "multiplicative"])
def test_replicates_in_rows_with_labels_become_what_replicates_in_columns_do(
    tmp_path: Path, expectation: str
) -> None:
    frames = []
    for name, text in (("wide.csv", WIDE), ("long.csv", LONG)):
        layout = Layout(phenotype="growth" if expectation else "fitness", expectation=expectation)
        m, report, reading = reading_of(write(tmp_path, text, name), layout)
        dataset = register(m, report, yeast(), policies=reading.policies)
        frames.append(dataset.to_pandas().set_index("genes")[["value", "sd"]])
    np.testing.assert_allclose(frames[0]["value"], [0.6, 1.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(frames[0]["sd"].iloc[:2], [math.sqrt(0.03), 0.0], rtol=1e-6)
    pd.testing.assert_frame_equal(frames[1], frames[0])


def test_a_row_that_repeats_value_and_replicate_label_counts_once(tmp_path: Path) -> None:
    text = "genes,value,replicate\nSGS1,0.5,1\nSGS1,0.5,1\nSGS1,0.5,2\nSGS1,0.8,3\nSGS1,0.8,3\n"
    m, report, reading = reading_of(write(tmp_path, text), Layout(phenotype="fitness"))
    assert "count once: 2" in str(summarise(m, yeast(), report)["remarks"])
    dataset = register(m, report, yeast(), policies=reading.policies)
    assert dataset.excluded == {
        "merged: duplicate entry (same value and sd)": 2,
        "merged: replicates of one mutant": 2,
    }
    assert dataset.table.value.tolist() == [pytest.approx(0.6)]
    assert dataset.table.sd.tolist() == [pytest.approx(math.sqrt(0.03))]


@pytest.mark.parametrize(
    "text", ["genes,value,replicate\nSGS1,1,\nSRS2,2,\n", "genes,fitness,size\nSGS1,1,2\nSRS2,2,3\n"]
)
def test_an_empty_column_of_labels_and_columns_of_several_phenotypes_are_no_replicates(
    tmp_path: Path, text: str
) -> None:
    several = Layout(Columns(value="fitness=fitness; size=size"))
    layout = several if "size" in text else Layout(phenotype="fitness")
    reading = reading_of(write(tmp_path, text), layout)[2]
    assert reading.policies == Policies()


def test_without_replicate_labels_an_equal_number_is_a_repeat(tmp_path: Path) -> None:
    path = write(tmp_path, "genes,value,replicate\nSGS1,0.5,\nSGS1,0.5,\nSGS1,0.8,\n")
    m, report, reading = reading_of(path, Layout(phenotype="fitness"))
    dataset = register(m, report, yeast(), policies=reading.policies)
    assert dataset.table.value.tolist() == [pytest.approx(0.65)]


def test_a_matrix_of_expression_becomes_profiles(tmp_path: Path) -> None:
    path = write(tmp_path, "mutant,YMR190C,SRS2\nCDC28,1,2\nwt,5,6\nHO,3,\n")
    m, report, _ = reading_of(path, Layout(shape="profiles"))
    dataset = register(m, report, yeast())
    assert [(p.name, p.form) for p in dataset.phenotypes] == [("expression", "gene")]
    assert dataset.excluded == {"measurement of the wild type": 2}
    assert dataset.notes[0] == NOTE
    stored = read_dataset(dataset_folder("my"), yeast())
    assert stored.table.profiles is not None
    assert stored.table.profiles[:, :2].tolist() == [[1, 2], [3, pytest.approx(math.nan, nan_ok=True)]]
    assert np.isnan(stored.table.profiles[:, 2:]).all()


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("genes,value,censored\nSGS1,1,\nSRS2,-9,yes\nHO;SGS1,2,0\n", Layout()),
        ("genes,value\nSGS1,1\nSRS2,-9\nHO;SGS1,2\n", Layout(censored_at="-9")),
        (
            "genes,value,lfc\nSGS1,1,-2\nSRS2,-9,-8\nHO;SGS1,2,\n",
            Layout(Columns(censored="lfc"), censored_at="-7"),
        ),
    ],
)
def test_censored_values_are_counted_and_no_target(tmp_path: Path, text: str, layout: Layout) -> None:
    readings: list[ReadReport] = []
    told: list[Reading] = []
    path = write(tmp_path, text)
    m = read_table(path, yeast(), layout, collect=readings.append, tell=told.append)
    assert "censored measurements: 1" in "\n".join(told[0].remarks)
    dataset = register(m, readings[0], yeast())
    assert [p.name for p in dataset.phenotypes] == ["value", "value_censored"]
    assert dataset.targets == ("value",)
    assert sorted(dataset.select(list(dataset.targets)).table.value.tolist()) == [1, 2]


def test_a_row_is_censored_with_all_its_replicates(tmp_path: Path) -> None:
    text = "genes,a1,a2,b1\nSGS1,1,2,3\nSRS2,-9,2,3\n"
    layout = Layout(Columns(value="a=a1,a2; b=b1"), censored_at="-9")
    m = read_table(write(tmp_path, text), yeast(), layout)
    found: dict[str, list[float]] = {}
    for phenotype, value in zip(m.phenotype, m.value, strict=True):
        found.setdefault(m.phenotypes[phenotype].name, []).append(float(value))
    assert found == {"a": [1, 2], "b": [3], "a_censored": [-9, 2], "b_censored": [3]}


def test_a_phenotype_called_like_a_column_of_predictions_is_refused(tmp_path: Path) -> None:
    path, readings = write(tmp_path, TEXT), list[ReadReport]()
    measured = read_table(path, yeast(), Layout(phenotype="rank"), collect=readings.append)
    with pytest.raises(SourceError, match="the phenotype 'rank' has the name of another column"):
        register(measured, readings[0], yeast())
    assert not store_path().exists()


@pytest.mark.parametrize("ending", ["_low", "_high", "_sd", "_measured", "_unlisted"])
def test_a_phenotype_called_like_a_column_of_another_phenotype_is_refused(
    tmp_path: Path, ending: str
) -> None:
    text = f"genes,phenotype,value\nSGS1,size{ending},1\nSGS1,size,2\n"
    path, readings = write(tmp_path, text), list[ReadReport]()
    measured = read_table(path, yeast(), collect=readings.append)
    message = f"the phenotype 'size{ending}' has the name of a column .* for the phenotype 'size': rename one"
    with pytest.raises(SourceError, match=message):
        register(measured, readings[0], yeast())
    assert not store_path().exists()


def test_a_phenotype_with_such_an_ending_is_kept_where_no_other_has_the_rest_of_its_name(
    tmp_path: Path,
) -> None:
    path, readings = (
        write(tmp_path, "genes,phenotype,value\nSGS1,size_sd,1\nSGS1,count,2\n"),
        list[ReadReport](),
    )
    measured = read_table(path, yeast(), collect=readings.append)
    dataset = register(measured, readings[0], yeast())
    assert [phenotype.name for phenotype in dataset.phenotypes] == ["count", "size_sd"]
