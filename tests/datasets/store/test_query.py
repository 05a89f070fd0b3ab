"""Every condition of a query against the same condition in Python, over the records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.datasets.store.examples import assert_same_columns, drawn
from tests.datasets.test_measurements import plain
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Measurement, PerturbationKind
from wildtype.datasets.store import Query, Store
from wildtype.datasets.store.canonical import canonical, sha256
from wildtype.datasets.store.results import write_result
from wildtype.datasets.store.schema import study_number
from wildtype.errors import DatasetError

Condition = tuple[Callable[[Query], Query], Callable[[Measurement], bool]]
GENES = [f"YAL{i:03d}W" for i in range(9)]  # the last is in no mutant
KINDS = [kind.name.lower() for kind in PerturbationKind]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[int, Measurement]]]:
    """A store and its records by id, which is the study's number and the place in the canonical order."""
    parts = {"tiny2024": drawn(250), "other2025": drawn(150, seed=1, name="other2025")}
    with Store.create(tmp_path_factory.mktemp("query") / "store.duckdb") as store:
        store.ingest(Measurements.concatenate(list(parts.values())))
        yield (
            store,
            {
                (study_number(name) << 32) + place: record
                for name, part in parts.items()
                for place, record in enumerate(canonical(part).records())
            },
        )


def genes(record: Measurement) -> set[str]:
    return {p.gene for p in record.genotype.perturbations}


def kinds(record: Measurement) -> set[str]:
    return {p.kind.name.lower() for p in record.genotype.perturbations}


def compounds(record: Measurement) -> set[str]:
    return {c.name for c in record.environment.compounds}


def some(*values: object) -> st.SearchStrategy[list]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3)


numbers = st.sampled_from([-0.25, 0.0, 0.1, 1 / 3, -1e-9, 0.05])
conditions: st.SearchStrategy[Condition] = st.one_of(
    some("tiny2024", "other2025", "it's").map(lambda v: (lambda q: q.study(*v), lambda r: r.study in v)),
    some("fitness", "epsilon", "size").map(
        lambda v: (lambda q: q.phenotype(*v), lambda r: r.phenotype.name in v)
    ),
    some("area", "length").map(lambda v: (lambda q: q.trait(*v), lambda r: r.trait in v)),
    some("", "MATa").map(lambda v: (lambda q: q.replicate(*v), lambda r: r.replicate in v)),
    some("BY4741").map(lambda v: (lambda q: q.reference(*v), lambda r: r.reference in v)),
    some(0, 1, 2, 3, 4).map(lambda v: (lambda q: q.order(*v), lambda r: len(genes(r)) in v)),
    some(*GENES).map(lambda v: (lambda q: q.genes(any=v), lambda r: bool(genes(r) & set(v)))),
    some(*GENES).map(lambda v: (lambda q: q.genes(all=v), lambda r: genes(r) >= set(v))),
    some(*GENES).map(lambda v: (lambda q: q.genes(none=v), lambda r: not genes(r) & set(v))),
    some(*PerturbationKind).map(
        lambda v: (lambda q: q.kind(*v), lambda r: kinds(r) <= {k.name.lower() for k in v})
    ),
    some(*KINDS).map(lambda v: (lambda q: q.kind(*v), lambda r: kinds(r) <= set(v))),
    some("YPD", "SC").map(lambda v: (lambda q: q.environment(medium=v), lambda r: r.environment.medium in v)),
    some(26, 30.5, 37.0, math.nan).map(
        lambda v: (
            lambda q: q.environment(temperature=v),
            lambda r: str(r.environment.temperature) in [str(float(t)) for t in v],
        )
    ),
    st.lists(st.sampled_from(["NaCl", "DMSO", "H2O"]), max_size=2).map(
        lambda v: (
            lambda q: q.environment(compound=v),
            lambda r: compounds(r) >= set(v) if v else not compounds(r),
        )
    ),
    numbers.map(lambda v: (lambda q: q.value(min=v), lambda r: r.value >= v)),
    numbers.map(lambda v: (lambda q: q.value(max=v), lambda r: r.value <= v)),
    numbers.map(lambda v: (lambda q: q.p_below(v), lambda r: r.p < v)),
)


@given(chosen=st.lists(conditions, min_size=1, max_size=3))
def test_a_query_keeps_what_it_says(
    filled: tuple[Store, dict[int, Measurement]], chosen: list[Condition]
) -> None:
    store, records = filled
    query = Query()
    for narrow, _ in chosen:
        query = narrow(query)
    expected = {key for key, record in records.items() if all(holds(record) for _, holds in chosen)}
    with store.query(query.sql) as batches:
        found = batches.read_all()["id"].to_pylist()
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_query_and_its_sql_select_the_same(filled: tuple[Store, dict[int, Measurement]]) -> None:
    store, records = filled
    query = Query().order(2, 3).genes(none=["YAL003W"])
    found = store.select(query)
    assert_same_columns(found, store.select(query.sql))
    assert store.content_hash(query) == store.content_hash(query.sql) == sha256(found)
    expected = [r for r in records.values() if len(genes(r)) > 1 and "YAL003W" not in genes(r)]
    assert sorted(plain(list(found.records()))) == sorted(plain(expected))


def test_queries_never_change() -> None:
    base = Query().study("a")
    base.order(2).p_below(0.05)
    assert base == Query().study("a")
    assert base.sql == "SELECT id FROM measurements\nWHERE study = 'a'"
    assert str(Query()) == "SELECT id FROM measurements"
    one = Query().environment(medium="YPD", temperature=30, compound="NaCl")
    assert one == Query().environment(medium=["YPD"], temperature=[30.0], compound=["NaCl"])


def test_text_stays_text(filled: tuple[Store, dict[int, Measurement]]) -> None:
    store, _ = filled
    for hostile in ("' OR 1=1 --", "'; DROP TABLE study; --", "\\'", "x'||'y", 'a"b', "$1", "?"):
        with pytest.raises(DatasetError, match="gives no measurements"):
            store.select(Query().study(hostile).genes(any=[hostile]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda q: q.study(), "no study"),
        (lambda q: q.genes(), "expected genes as any="),
        (lambda q: q.genes(any=[]), "no genes"),
        (lambda q: q.kind("deletoin"), "'deletoin'; known: deletion"),
        (lambda q: q.environment(), "expected medium="),
        (lambda q: q.environment(temperature=[]), "no temperature"),
        (lambda q: q.value(), "expected min= or max="),
        (lambda q: q.value(min=math.nan), "nan, expected"),
        (lambda q: q.p_below(True), "True, expected"),
        (lambda q: q.study("a\0b"), "NUL"),
    ],
)
def test_a_condition_that_says_nothing_is_refused(ask: Callable[[Query], Query], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        ask(Query())


def test_no_text_of_a_result_is_a_formula(tmp_path: Path) -> None:
    texts = ["=1+1", "+cmd", "-2", "-", "+1e-3", "@x", "plain", None, ""]
    table = pa.table({"text": texts, "entries": [["=a", "b"]] * len(texts), "number": [-1.5] * len(texts)})
    assert write_result(table.to_reader(), tmp_path / "out.csv") == len(texts)
    read = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert read["text"].tolist() == ["'=1+1", "'+cmd", "-2", "-", "+1e-3", "'@x", "plain", "", ""]
    assert set(read["entries"]) == {"'=a;b"}
    assert set(read["number"]) == {"-1.5"}
