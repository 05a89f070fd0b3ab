"""All stages together, against a slow account of the same rules, record by record."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.stages.made import (
    EPSILON,
    NAMES,
    ORGANISM,
    SIZE,
    STUDIES,
    WARM,
    YPD,
    measured,
    measurements,
    one,
    policies,
    sensitive,
)
from wildtype.datasets import Dataset
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import Measurement, PerturbationKind
from wildtype.datasets.stages.build import build_dataset
from wildtype.datasets.stages.convert import EFFECT
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.stages.rows import StagedRows
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import MutantTable

some = st.lists(measurements(), min_size=1, max_size=14)
Number = tuple[float, float, str]
"""Value, sd and p-value; the last as a text, so that an unknown one equals another."""


def build(rows: Measurements, chosen: Policies) -> Dataset | None:
    try:
        return build_dataset(rows, ORGANISM, name="toy", policies=chosen)
    except (DatasetError, ConfigError) as error:
        if not re.match(r"dataset 'toy': no row is left|no measurement was made in environment", str(error)):
            raise
        return None


def only(ps: set[str]) -> str:
    return ps.pop() if len(ps) == 1 else "nan"


def mean(members: list[Number]) -> Number:
    center = math.fsum(v for v, *_ in members) / len(members)
    between = math.fsum((v - center) ** 2 for v, *_ in members) / len(members)
    known = [s * s for _, s, _ in members if not math.isnan(s)]
    sd = math.sqrt(math.fsum(known) / len(known) + between) if known else math.nan
    return center, sd, only({p for *_, p in members})


def weighted(members: list[Number], floor: float) -> Number:
    known = [(v, max(s, floor), p) for v, s, p in members if not math.isnan(s)]
    if len(members) == 1 or not known:
        return members[0] if len(members) == 1 else mean(members)
    p = only({p for *_, p in known})
    if all(s == 0 for _, s, _ in known):
        return mean(known)[0], 0.0, p
    weights = [1 / s**2 for _, s, _ in known]
    value = math.fsum(w * v for w, (v, *_) in zip(weights, known, strict=True)) / math.fsum(weights)
    return value, 1 / math.sqrt(math.fsum(weights)), p


def account(records: list[Measurement], chosen: Policies) -> dict[tuple[object, ...], list[Number]]:
    """Return the numbers of every mutant, phenotype and condition, alleles apart where they are."""
    numbers: dict[tuple[object, ...], dict[tuple[float, str, int | str], set[str]]] = defaultdict(dict)
    for record in records:
        name = ":".join(part for part in (record.phenotype.name, record.trait) if part)
        if chosen.studies == "apart":
            name = f"{record.study}:{name}"
        if chosen.environments == "one" and record.environment != YPD:
            continue
        place = str(record.environment) if chosen.environments == "apart" else ""
        mutant = list(record.genotype.perturbations)
        supp = [p for p in mutant if p.kind == PerturbationKind.SUPPRESSOR]
        if supp and chosen.suppressors == "drop":
            continue
        mutant = [p for p in mutant if p not in supp and p.gene not in chosen.neutral]
        genes = [p.gene for p in mutant]
        if (
            not set(genes) <= set(NAMES)
            or len(set(genes)) < len(genes)
            or len(genes) < record.phenotype.min_order
        ):
            continue
        seen = tuple(sorted((p.gene, EFFECT[p.kind].name, str(p.dose)) for p in mutant))
        strain = tuple(sorted((p.gene, p.kind.name, p.allele) for p in mutant))
        sd = record.sd
        if math.isnan(sd) and chosen.sd == "derived" and record.n:
            sd = record.se * math.sqrt(record.n)
        found = numbers[name, place, seen, strain]
        per_entry = {"every": len(found), "once per replicate": record.replicate}
        entry = per_entry.get(chosen.listed_again, "")
        ps = found.setdefault((record.value + 0.0, str(sd + 0.0), entry), set())
        ps |= set() if math.isnan(record.p) else {str(record.p)}
    known = defaultdict(list)
    for (name, *_), found in numbers.items():
        known[name] += [float(sd) for _, sd, _ in found if float(sd) > 0]
    floors = {name: 0.1 * sorted(sds)[(len(sds) - 1) // 2] for name, sds in known.items() if sds}
    out: dict[tuple[object, ...], list[Number]] = defaultdict(list)
    for (name, place, seen, strain), found in numbers.items():
        members = [(value, float(sd), only(ps)) for (value, sd, _), ps in found.items()]
        if chosen.replicates == "mean":
            members = [mean(members)]
        elif chosen.replicates == "mean and sd" and len(members) > 1:
            values = [v for v, *_ in members]
            members = [(statistics.fmean(values), statistics.stdev(values), only({p for *_, p in members}))]
        elif chosen.replicates == "inverse variance":
            members = [weighted(members, floors.get(str(name), 0.0))]
        out[(name, place, seen) + ((strain,) if chosen.alleles == "apart" else ())] += members
    if chosen.alleles == "averaged":
        out = {key: [mean(members)] for key, members in out.items()}
    if chosen.essential == "fitness 0" and out:
        _add_lethal(out, chosen)
    return out


def _add_lethal(out: dict[tuple[object, ...], list[Number]], chosen: Policies) -> None:
    names = {str(key[0]) for key in out if str(key[0]).split(":")[-1] == "fitness"}
    deleted = {(key[0], seen[0][0]) for key in out if len(seen := key[2]) == 1 and seen[0][1] == "ABSENT"}  # type: ignore[arg-type, index, misc]
    for name in names:
        for gene in ("G3", "G4"):
            if (name, gene) not in deleted:
                key = (name, "reference", ((gene, "ABSENT", "nan"),))
                out[key + (((gene, "DELETION", ""),),) * (chosen.alleles == "apart")] = [
                    (0.0, math.nan, "nan")
                ]


def summary(numbers: list[tuple[str, tuple[object, ...], float, float, str]]) -> list[tuple[object, ...]]:
    return sorted(
        ((name, seen, round(v, 5) + 0.0, str(round(s, 5)), p) for name, seen, v, s, p in numbers), key=repr
    )


@settings(max_examples=150)
@given(some, policies())
def test_the_stages_do_what_the_policies_say(records: list[Measurement], chosen: Policies) -> None:
    expected = [
        (str(key[0]), key[2], value, sd, p)
        for key, numbers in account(records, chosen).items()
        for value, sd, p in numbers
    ]
    dataset = build(measured(*records), chosen)
    if dataset is None:
        assert not expected
        return
    t, doses = dataset.table, np.full(dataset.table.gene.size, math.nan)
    doses = doses if t.dose is None else t.dose
    assert t.p is None or not np.isnan(t.p).all()
    p = np.full(len(t), math.nan) if t.p is None else t.p.astype(float).round(6)
    kinds = {int(kind): kind.name for kind in EFFECT.values()}
    found = []
    for row, (a, b) in enumerate(itertools.pairwise(t.offsets)):
        seen = tuple((NAMES[t.gene[i]], kinds[t.kind[i]], str(float(doses[i]))) for i in range(a, b))
        name = dataset.phenotypes[t.phenotype[row]].name
        found.append((name, seen, float(t.value[row]), float(t.sd[row]), str(p[row])))
    assert summary(found) == summary(expected)  # type: ignore[arg-type]


@settings(max_examples=50)
@given(some, policies())
def test_every_row_is_accounted_for(records: list[Measurement], chosen: Policies) -> None:
    dataset = build(measured(*records), chosen)
    if dataset is None:
        return
    rows = len(records)
    for report in dataset.stages:
        assert report.rows_in == rows
        rows += sum(report.added.values()) - sum(report.dropped.values()) - sum(report.merged.values())
        assert report.rows_out == rows
    assert rows == len(dataset)
    added = sum(sum(report.added.values()) for report in dataset.stages)
    assert sum(dataset.excluded.values()) == len(records) + added - len(dataset)


@pytest.mark.slow
@given(some, policies(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_not_a_bit(
    records: list[Measurement], chosen: Policies, random: object
) -> None:
    # Sums of these differ by far more than the last bit when their order does.
    far = {0.7: 1e17, -1.1: -1e17}
    records = [record.model_copy(update={"value": far.get(record.value, record.value)}) for record in records]
    shuffled = list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = measured(*records)
    second = _turned(Measurements.from_records(STUDIES[::-1], shuffled))
    one_way, other_way = build(first, chosen), build(second, chosen)
    if one_way is None or other_way is None:
        assert one_way is other_way
        return
    assert one_way.sha256 == other_way.sha256
    for name, column in vars(one_way.table).items():
        assert (column is None) == (getattr(other_way.table, name) is None)
        if isinstance(column, np.ndarray):
            assert column.tobytes() == getattr(other_way.table, name).tobytes(), name
    assert one_way.card() == other_way.card()


def _turned(m: Measurements) -> Measurements:
    """Return the same rows with every mutant's perturbations, and every list of names, turned round."""
    spans = [np.arange(a, b)[::-1] for a, b in itertools.pairwise(m.offsets)]
    at = np.concatenate([np.zeros(0, np.int64), *spans])
    turned = replace(m, gene=m.gene[at], kind=m.kind[at], allele=m.allele[at], dose=m.dose[at])
    for code, names in (
        ("gene", "genes"),
        ("allele", "alleles"),
        ("trait", "traits"),
        ("study", "studies"),
        ("environment", "environments"),
        ("phenotype", "phenotypes"),
    ):
        listed = getattr(turned, names)
        codes = {code: len(listed) - 1 - getattr(turned, code), names: listed[::-1]}
        turned = replace(turned, **codes)
    return turned


def test_alleles_stand_in_the_order_of_their_names() -> None:
    records = [one(sensitive("G1", allele), value=value) for allele, value in (("b", 1.0), ("a", 2.0))]
    parts = [measured(record) for record in records]
    for order in (parts, parts[::-1]):
        rows = Measurements.concatenate(order)
        dataset = build_dataset(rows, ORGANISM, name="toy", policies=Policies(alleles="apart"))
        assert dataset.table.value.tolist() == [2, 1]


def test_a_dataset_and_its_card() -> None:
    dataset = build_dataset(
        measured(
            one("G1", "HO", value=0.9),
            one("G1", value=0.9),
            one("G2", environment=WARM),
            one("X9"),
            one("G1", "G2", phenotype=EPSILON, value=-0.2, sd=0.1, study="second2020"),
        ),
        ORGANISM,
        name="toy",
        policies=Policies(neutral=("HO",)),
        targets=["epsilon"],
        single_fitness=np.ones(5, np.float32),
        single_fitness_source="other:fitness",
        notes=("made up",),
        noise="none is known",
    )
    assert [p.name for p in dataset.phenotypes] == ["fitness", "epsilon"]
    assert dataset.phenotypes[1].source == "second2020:epsilon"
    assert dataset.conditions == (str(YPD), str(WARM))
    assert dataset.targets == ("epsilon",)
    assert dataset.citation == "First et al. 2018; Second et al. 2020"
    assert dataset.notes == ("made up", "in 1 rows a perturbation of a neutral locus (HO) is not represented")
    assert dataset.excluded == {
        "gene that the organism does not have": 1,
        "merged: duplicate entry (same value and sd)": 1,
    }
    assert dataset.to_pandas()["genes"].tolist() == ["G1", "G2", "G1,G2"]
    assert dataset.policies["neutral loci"] == "HO"
    stages = dataset.card()["stages"]
    assert [report["stage"] for report in stages] == ["raw"] + ["convert"] * 7 + ["deduplicate"] + [
        "aggregate"
    ] * 3
    assert stages[0]["rows_in"] == 5
    assert stages[-1]["rows_out"] == len(dataset) == 3


def test_phenotypes_and_conditions_without_rows_are_not_there() -> None:
    dataset = build_dataset(
        measured(one("X9", phenotype=SIZE, trait="area", environment=WARM), one("G1")), ORGANISM, name="toy"
    )
    assert [p.name for p in dataset.phenotypes] == ["fitness"]
    assert dataset.conditions == (str(YPD),)


def test_no_row_left_says_why() -> None:
    with pytest.raises(
        DatasetError, match=r"'toy': no row is left of 2 .*\(2 gene that the organism does not"
    ):
        build_dataset(measured(one("X9"), one("X9", "G1")), ORGANISM, name="toy")
    with pytest.raises(DatasetError, match="no row is left of 0 measurements: select some"):
        build_dataset(measured(one("G1")).take([]), ORGANISM, name="toy")


def test_a_target_that_is_not_there() -> None:
    with pytest.raises(DatasetError, match="no phenotype 'tau'; it has fitness"):
        build_dataset(measured(one("G1")), ORGANISM, name="toy", targets=["tau"])


def test_what_was_done_before_is_part_of_the_account() -> None:
    rows = measured(one("G1"), one("G2"))
    before = (
        StageReport("files", "read", "table.tsv", 5, 3, dropped={"no value": 2}),
        StageReport("raw", "choice", "mine", 3, 2, merged={"twice": 1}),
    )
    dataset = build_dataset(rows, ORGANISM, name="toy", before=before)
    assert dataset.stages[:2] == before
    assert dataset.stages[2].rows_in == 2
    assert dataset.excluded == {"no value": 2, "merged: twice": 1}
    with pytest.raises(DatasetError, match="3 rows came out of 'read', but 2 measurements came in"):
        build_dataset(rows, ORGANISM, name="toy", before=before[:1])


@given(st.lists(measurements(), min_size=2, max_size=14), policies())
@settings(deadline=None)
def test_rows_that_are_merged_some_at_a_time_give_the_same_dataset(
    records: list[Measurement], chosen: Policies
) -> None:
    rows = measured(*records)
    whole = build(rows, chosen)
    apart = StagedRows.apart
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedRows, "apart", lambda self: apart(self, 2))
        some_at_a_time = build(rows, chosen)
    if whole is None or some_at_a_time is None:
        assert whole is some_at_a_time
        return
    assert some_at_a_time.stages == whole.stages
    for name in (*MutantTable.ENTRIES, *MutantTable.ROWS, "offsets"):
        one_by_one, at_once = getattr(some_at_a_time.table, name), getattr(whole.table, name)
        assert (one_by_one is None) == (at_once is None)
        assert at_once is None or one_by_one.tobytes() == at_once.tobytes(), name
