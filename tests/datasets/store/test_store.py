from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.store.examples import READINGS, assert_same_columns, drawn, study
from tests.datasets.test_measurements import OTHER, STUDY, measurements, plain
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Measurement
from wildtype.datasets.store import Store, store_path
from wildtype.datasets.store.canonical import canonical, sha256
from wildtype.datasets.store.connection import query_rows
from wildtype.errors import DatasetError, OutputError
from wildtype.seeds import generator

ENTITIES = ("publication", "environment", "compound", "phenotype", "perturbation", "genotype", "file",
            "reading", "dropped", "environment_compound")  # fmt: skip


def counts(store: Store) -> dict[str, int]:
    return {table: query_rows(store._connection, f"SELECT count(*) FROM {table}")[0][0] for table in ENTITIES}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that has seen many studies come and go."""
    with Store.create(tmp_path_factory.mktemp("used") / "store.duckdb") as opened:
        yield opened


@given(records=st.lists(measurements(), min_size=1, max_size=12))
@settings(max_examples=15)
def test_what_comes_out_is_what_went_in(used: Store, records: list[Measurement]) -> None:
    given = Measurements.from_records([STUDY, OTHER], records)
    used.ingest(given)
    try:
        out = used.select()
        assert sorted(plain(list(out.records()))) == sorted(plain(records))
        assert_same_columns(out, canonical(given))
        assert used.content_hash() == sha256(given)
    finally:
        for stored in used.studies():
            used.drop(stored.name)


def test_studies_readings_and_notes_come_back(store: Store) -> None:
    given = drawn(50)
    store.ingest(given, READINGS)
    store.ingest(drawn(5, name="other2025"))
    first, second = (stored for stored in reversed(store.studies()))
    assert (first.name, second.name) == ("tiny2024", "other2025")
    assert first.study == study()
    assert first.rows == 50
    assert first.readings == READINGS
    assert list(first.readings[0].dropped) == ["unknown gene", "no value"]
    assert (first.licence, first.citation) == ("CC-BY 4.0", study().publication.citation)
    assert second.readings == ()


def test_order_of_rows_and_of_ingestion_changes_nothing(tmp_path: Path) -> None:
    parts = [drawn(80, name="a"), drawn(90, seed=1, name="b"), drawn(70, seed=2, name="c")]
    with Store.create(tmp_path / "one") as one, Store.create(tmp_path / "two") as two:
        for part in parts:
            one.ingest(part)
        mixed = Measurements.concatenate(parts[::-1])
        two.ingest(mixed.take(np.random.default_rng(0).permutation(len(mixed))))
        assert_same_columns(one.select(), two.select())
        for query in (None, "SELECT id FROM measurements WHERE n_genes > 1"):
            assert one.content_hash(query) == two.content_hash(query)
        ids = "SELECT id, study, genotype, value FROM measurements ORDER BY ALL"
        assert query_rows(one._connection, ids) == query_rows(two._connection, ids)


def test_hash_sees_every_change() -> None:
    base = drawn(20)
    changed = [
        base.take(range(19)),
        base.take([*range(20), 0]),
        *(
            _with(base, name)
            for name in ("value", "n", "dose", "replicate", "environment", "phenotype", "kind")
        ),
        drawn(20, name="tiny2025"),
    ]
    assert len({sha256(given) for given in (base, *changed)}) == len(changed) + 1


def _with(base: Measurements, name: str) -> Measurements:
    from dataclasses import replace

    column = getattr(base, name).copy()
    row = int(np.flatnonzero(base.order)[0])
    if name in ("dose", "kind"):
        column[base.offsets[row]] = 3.5 if name == "dose" else 3
        return replace(base, **{name: column})
    if name == "phenotype":  # between phenotypes of the whole cell
        row = int(np.flatnonzero(base.phenotype < 2)[0])
        column[row] = 1 - column[row]
    elif name in ("replicate", "environment"):
        column[row] = 1 - min(int(column[row]), 1)
    else:
        column[row] += 1
    return replace(base, **{name: column})


def test_a_study_stands_once_unless_it_is_replaced(store: Store) -> None:
    store.ingest(drawn(40), READINGS)
    before = store.content_hash()
    with pytest.raises(DatasetError, match="holds the study 'tiny2024' already"):
        store.ingest(drawn(10, seed=5))
    assert store.content_hash() == before
    store.ingest(drawn(10, seed=5), READINGS[:1], replace=True)
    assert_same_columns(store.select(), canonical(drawn(10, seed=5)))
    (stored,) = store.studies()
    assert (stored.rows, stored.readings) == (10, READINGS[:1])


def test_what_studies_share_stands_once_and_goes_with_the_last(store: Store) -> None:
    store.ingest(drawn(60), READINGS)
    alone = counts(store)
    same = drawn(60)
    store.ingest(
        Measurements.build(
            study("twin"),
            genes=same.genes,
            gene=same.gene,
            offsets=same.offsets,
            kind=same.kind,
            allele=np.array(same.alleles, object)[same.allele],
            dose=same.dose,
            value=same.value,
            environments=same.environments,
            environment=same.environment,
            phenotypes=same.phenotypes,
            phenotype=same.phenotype,
            trait=np.array(same.traits, object)[same.trait],
        )
    )
    shared = ("environment", "compound", "phenotype", "perturbation", "genotype", "environment_compound")
    assert {t: counts(store)[t] for t in shared} == {t: alone[t] for t in shared}
    store.drop("twin")
    assert counts(store) == alone
    store.drop("tiny2024")
    assert set(counts(store).values()) == {0}
    with pytest.raises(DatasetError, match="holds no study 'twin'; it holds none"):
        store.drop("twin")
    with pytest.raises(DatasetError, match="gives no measurements"):
        store.select()


def test_view_says_what_the_records_say_after_numbers_fell_out_of_use(store: Store) -> None:
    store.ingest(drawn(60, name="first", genes=5))
    given = drawn(60, seed=3, name="second", genes=8)
    store.ingest(given)
    store.drop("first")
    sql = (
        "SELECT genes, kinds, alleles, doses, n_genes, environment, medium, compounds, phenotype, trait, "
        "value, n FROM measurements ORDER BY id"
    )
    found = query_rows(store._connection, sql)
    expected = [
        (
            [p.gene for p in r.genotype.perturbations],
            [p.kind.name.lower() for p in r.genotype.perturbations],
            [p.allele for p in r.genotype.perturbations],
            [None if p.dose != p.dose else p.dose for p in r.genotype.perturbations],
            len({p.gene for p in r.genotype.perturbations}),
            str(r.environment),
            r.environment.medium,
            [c.name for c in r.environment.compounds],
            r.phenotype.name,
            r.trait,
            r.value,
            r.n,
        )
        for r in canonical(given).records()
    ]
    assert found == expected


def test_two_alleles_of_a_gene_are_one_gene(store: Store) -> None:
    given = Measurements.build(
        study(),
        genes=["YAL001C"],
        gene=[[0, 0]],
        allele=["a-1", "a-2"],
        value=[1.0],
        phenotypes=drawn(1).phenotypes[:1],
    )
    store.ingest(given)
    assert query_rows(store._connection, "SELECT n_genes, len(genes) FROM measurements") == [(1, 2)]


def test_readings_and_studies_that_do_not_fit(store: Store) -> None:
    both = Measurements.concatenate([drawn(5, name="a"), drawn(5, name="b")])
    with pytest.raises(DatasetError, match="readings came with 2 studies"):
        store.ingest(both, READINGS)
    with pytest.raises(DatasetError, match="at least one row"):
        store.ingest(drawn(5).take([]))
    other = Measurements.build(
        study("a").model_copy(update={"licence": "none"}),
        genes=["g"],
        gene=[0],
        value=[1.0],
        phenotypes=drawn(1).phenotypes[:1],
    )
    with pytest.raises(DatasetError, match="two studies share a name"):
        store.ingest(Measurements.concatenate([both, other]))
    assert store.studies() == ()


def test_open_and_create(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "store.duckdb"
    with pytest.raises(DatasetError, match="there is no store at"):
        Store.open(path)
    with Store.create(path) as store:
        store.ingest(drawn(10))
    assert [p.name for p in path.parent.iterdir()] == ["store.duckdb"]
    with pytest.raises(DatasetError, match="exists already"):
        Store.create(path)
    with Store.open(path, read_only=True) as store:
        assert len(store.select()) == 10
        for change in (lambda: store.ingest(drawn(5, name="b")), lambda: store.drop("tiny2024")):
            with pytest.raises(DatasetError, match="open for reading only"):
                change()
        with pytest.raises(DatasetError, match="already open in this program"):
            Store.open(path)
    with pytest.raises(OutputError, match="/proc/none"):
        Store.create("/proc/none/store.duckdb")


def test_a_later_store_is_refused(tmp_path: Path) -> None:
    for column in ("schema_version", "record_version"):
        path = tmp_path / column
        with Store.create(path) as store:
            store._connection.execute(f"UPDATE meta SET {column} = 99")
        with pytest.raises(DatasetError, match="99.*update wildtype"):
            Store.open(path)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    import duckdb

    text = tmp_path / "notes.txt"
    text.write_text("not a store\n" * 1000)
    with pytest.raises(DatasetError, match="is not a store of measurements"):
        Store.open(text)
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).close()
    with pytest.raises(DatasetError, match="not a store of measurements"):
        Store.open(other)
    with pytest.raises(DatasetError, match="there is no store"):
        Store.open(tmp_path)


def test_damage_is_said_wherever_it_is(tmp_path: Path) -> None:
    """Damage is a sentence about the store, or the hash is as it was: never other numbers."""
    path = tmp_path / "store.duckdb"
    with Store.create(path) as store:
        store.ingest(drawn(3000))
        before = store.content_hash()
    whole, junk = path.read_bytes(), generator(0, "damage").bytes(64)
    said = []
    for place in np.linspace(0, len(whole) - 64, 16).astype(int).tolist():
        path.write_bytes(whole[:place] + junk + whole[place + 64 :])
        try:
            with Store.open(path, read_only=True) as store:
                assert store.content_hash() == before
        except DatasetError as error:
            said.append(str(error))
    assert len(said) > 4
    assert all(str(path) in sentence for sentence in said)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="damaged"), Store.open(path) as store:
        store.content_hash()


def test_a_store_in_use_says_so(store: Store) -> None:
    code = (
        "from wildtype.datasets.store import Store\n"
        f"try: Store.open({str(store.path)!r}, read_only=True)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("DatasetError")
    assert f"in use by another process (PID {os.getpid()})" in said


def test_a_name_that_would_share_ids_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from wildtype.datasets.store import ingest

    store.ingest(drawn(5, name="a"))
    number = ingest.study_number("a")
    monkeypatch.setattr(ingest, "study_number", lambda name: number)
    with pytest.raises(DatasetError, match="'b' would have the ids of 'a': rename it"):
        store.ingest(drawn(5, name="b"))
    assert [stored.name for stored in store.studies()] == ["a"]


def test_default_place_is_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    assert store_path() == tmp_path / "store.duckdb"
