from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.store.examples import assert_same_columns, drawn
from tests.datasets.test_measurements import OTHER, STUDY, measurements, plain
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Genotype, Measurement
from wildtype.datasets.store.canonical import canonical, sha256


@given(st.lists(measurements(), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_equal_facts_have_one_form(records: list[Measurement], random: object) -> None:
    shuffled = list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = canonical(Measurements.from_records([STUDY, OTHER], records))
    second = canonical(Measurements.from_records([OTHER, STUDY], shuffled))
    assert_same_columns(first, second)
    assert_same_columns(first, canonical(first))
    assert sorted(plain(list(first.records()))) == sorted(plain(records))


def test_order_of_perturbations_and_lists_of_names_is_not_seen() -> None:
    base = drawn(60)
    turned = np.arange(len(base.gene))
    for a, b in zip(base.offsets[:-1], base.offsets[1:], strict=True):
        turned[a:b] = turned[a:b][::-1]
    genes = np.arange(len(base.genes))[::-1]
    other = replace(
        base,
        **{name: getattr(base, name)[turned] for name in ("kind", "allele", "dose")},
        genes=(*(base.genes[g] for g in genes), "YZZ999W"),
        gene=genes[base.gene[turned]],
        environments=base.environments * 2,
        environment=base.environment + 3 * (base.n % 2),
    )
    assert not np.array_equal(other.gene, base.gene)
    assert_same_columns(canonical(other), canonical(base))
    assert sha256(other) == sha256(base)


def test_rows_of_a_genotype_stand_together() -> None:
    rows = drawn(200)
    first, code = rows.genotypes
    ids = ["".join(f"{half:016x}" for half in key) for key in rows.genotype_key[first].tolist()]
    assert ids == sorted(set(ids))
    assert [ids[c] for c in code] == [record.genotype.id for record in rows.records()]
    ordered = [record.genotype.id for record in canonical(rows).records()]
    assert ordered == sorted(ordered)
    assert ids[0] == Genotype(perturbations=()).id
