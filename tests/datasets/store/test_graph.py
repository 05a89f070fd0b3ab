"""Node and relation tables: out, in again, and nothing changes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.datasets.store.examples import READINGS, assert_same_columns, drawn
from wildtype.datasets.store import Store
from wildtype.datasets.store.graph_export import MANIFEST, NODES, RELATIONS, export_graph
from wildtype.datasets.store.graph_import import import_graph
from wildtype.errors import DatasetError, OutputError, SourceError
from wildtype.files import sha256_of_file


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store and the folder of its tables."""
    base = tmp_path_factory.mktemp("graph")
    with Store.create(base / "store.duckdb") as store:
        store.ingest(drawn(120), READINGS)
        store.ingest(drawn(60, seed=1, name="other2025", genes=12))
        rows = export_graph(store, base / "graph")
        assert rows["measurement.csv"] == rows["measurement_genotype.csv"] == 180
    return base / "store.duckdb", base / "graph"


@pytest.fixture
def copy(exported: tuple[Path, Path], tmp_path: Path) -> Path:
    """A folder of tables to damage."""
    import shutil

    return Path(shutil.copytree(exported[1], tmp_path / "graph"))


def test_out_and_in_again(exported: tuple[Path, Path], tmp_path: Path) -> None:
    path, folder = exported
    assert import_graph(folder, tmp_path / "again.duckdb") == {"other2025": 60, "tiny2024": 120}
    with Store.open(path, read_only=True) as store, Store.open(tmp_path / "again.duckdb") as again:
        assert_same_columns(again.select(), store.select())
        assert again.content_hash() == store.content_hash()
        assert again.studies() == store.studies()
        export_graph(again, tmp_path / "graph")
    names = sorted(file.name for file in folder.iterdir())
    assert names == sorted([MANIFEST, *(table.file for table in (*NODES, *RELATIONS))])
    for name in names:
        assert sha256_of_file(tmp_path / "graph" / name) == sha256_of_file(folder / name), name


def test_headers_are_those_of_bulk_loaders(exported: tuple[Path, Path]) -> None:
    _, folder = exported
    headers = {}
    for table in (*NODES, *RELATIONS):
        with open(folder / table.file, encoding="utf-8", newline="") as handle:
            rows = list(csv.reader(handle))
        headers[table.name] = rows[0]
        assert {len(row) for row in rows} == {len(table.header)}
        assert {row[-1] for row in rows[1:]} <= {table.label}
    assert headers["genotype"] == ["id:ID(Genotype)", "n_genes:long", ":LABEL"]
    assert headers["measurement"][:3] == ["id:ID(Measurement)", "trait", "value:double"]
    assert headers["genotype_perturbation"] == [":START_ID(Genotype)", ":END_ID(Perturbation)", ":TYPE"]
    spaces = {table.header[0].partition("(")[2][:-1] for table in NODES}
    for table in RELATIONS:
        assert {header.partition("(")[2][:-1] for header in table.header[:2]} <= spaces


def test_order_of_lines_does_not_matter(exported: tuple[Path, Path], copy: Path, tmp_path: Path) -> None:
    for file in copy.glob("*.csv"):
        header, *lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text(header + "".join(reversed(lines)), encoding="utf-8")
    import_graph(copy, tmp_path / "turned.duckdb")
    with Store.open(exported[0], read_only=True) as store, Store.open(tmp_path / "turned.duckdb") as turned:
        assert turned.content_hash() == store.content_hash()
        assert turned.studies() == store.studies()


def test_a_folder_with_something_in_it_is_left_alone(exported: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with Store.open(exported[0], read_only=True) as store:
        for target in (tmp_path, tmp_path / "thesis.tex", exported[1]):
            with pytest.raises(OutputError, match="name a new folder"):
                export_graph(store, target)
        (tmp_path / "empty").mkdir()
        export_graph(store, tmp_path / "empty")
        with pytest.raises(OutputError, match="/proc/none"):
            export_graph(store, "/proc/none/graph")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_study_that_is_there_already_is_refused(exported: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.create(path) as store:
        store.ingest(drawn(5, name="tiny2024"))
        before = store.content_hash()
    with pytest.raises(DatasetError, match="holds the study 'tiny2024' already"):
        import_graph(exported[1], path)
    with Store.open(path) as store:
        assert store.content_hash() == before


def replaced(name: str, old: str, new: str, count: int = 1) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, count), encoding="utf-8")

    return change


def without_line(name: str, line: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: line - 1] + lines[line:]), encoding="utf-8")

    return change


def doubled_line(name: str, line: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines + lines[line - 1 : line]), encoding="utf-8")

    return change


def later_version(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format_version": 99}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / MANIFEST).unlink(), "has no graph.json"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "graph.json cannot be read"),
        (later_version, "99.*update wildtype"),
        (lambda folder: (folder / "gene.csv").unlink(), "gene.csv is not in"),
        (replaced("gene.csv", "name:ID(Gene)", "gene:ID(Gene)"), "gene.csv, line 1: received 'gene:ID"),
        (replaced("measurement.csv", '"",-0.25', '"",much'), r"measurement.csv is damaged .*Row #\d+.*much"),
        (replaced("measurement.csv", '"Measurement"', '"Measurement",3'), "measurement.csv is damaged"),
        (
            lambda folder: (folder / "gene.csv").write_bytes(b"name:ID(Gene),:LABEL\n\xff\xfe,Gene\n"),
            "gene.csv is damaged",
        ),
        (without_line("gene.csv", 3), r"perturbation_gene.csv, line \d+: 'YAL001W' is not in gene.csv"),
        (doubled_line("genotype.csv", 2), "genotype.csv has a repeated key"),
        (without_line("measurement_genotype.csv", 2), "measurement_genotype.csv: measurement '.*' is not"),
        (doubled_line("measurement_study.csv", 2), "measurement_study.csv: measurement '.*' is not"),
        (replaced("perturbation.csv", '"deletion"', '"undoing"'), "perturbation.csv, line .*'UNDOING'"),
        (replaced("phenotype.csv", '"cell"', '"organ"'), r"phenotype.csv, line \d: not a phenotype .*level"),
        (replaced("study.csv", '"yeast"', '""'), "study.csv, line 2: not a study .*organism"),
        (doubled_line("genotype_perturbation.csv", 2), "what cannot be: .*one perturbation twice"),
        (replaced("reading_reason.csv", "15,", ","), "reading_reason.csv has a row without rows"),
    ],
)
def test_damage_is_named_and_nothing_is_written(
    copy: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(copy)
    with pytest.raises(SourceError, match=message) as refused:
        import_graph(copy, tmp_path / "new.duckdb")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "new.duckdb").exists()


def test_keys_of_another_database_do(exported: tuple[Path, Path], copy: Path, tmp_path: Path) -> None:
    """A graph database may hand out keys of its own; what the records say decides."""
    keys: dict[str, str] = {}
    columns = {"genotype.csv": 0, "genotype_perturbation.csv": 0, "measurement_genotype.csv": 1}
    for name, column in columns.items():
        with open(copy / name, encoding="utf-8", newline="") as handle:
            header, *rows = csv.reader(handle)
        for row in rows:
            row[column] = keys.setdefault(row[column], f"node {len(keys)}")
        with open(copy / name, "w", encoding="utf-8", newline="") as handle:
            csv.writer(handle).writerows([header, *rows])
    import_graph(copy, tmp_path / "new.duckdb")
    with Store.open(exported[0], read_only=True) as store, Store.open(tmp_path / "new.duckdb") as again:
        assert again.content_hash() == store.content_hash()
