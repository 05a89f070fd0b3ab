"""Fitness, epsilon and tau from growth: formulas against plain definitions, errors against differences."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.sources.user_tables.tables import write, yeast
from wildtype.datasets.interactions import epsilon, tau
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.errors import ConfigError, SourceError
from wildtype.sources.user_tables.growth import EXPECTATIONS, from_growth
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.table import read_table

NAMES = ("SGS1", "SRS2", "HO")
SETS = [set_ for size in range(4) for set_ in combinations(NAMES, size)]
RNG = np.random.default_rng(0)
GROWTH = {set_: 0.4 - 0.08 * len(set_) + 0.03 * float(RNG.normal()) for set_ in SETS}
SD = {set_: 0.01 * float(RNG.uniform(1, 2)) for set_ in SETS}


def text(growth: dict[tuple[str, ...], float], sd: dict[tuple[str, ...], float] = SD) -> str:
    lines = [f"{';'.join(set_) or 'wt'},{growth[set_]!r},{sd.get(set_, '')!r}" for set_ in growth]
    return "genes,rate,sd\n" + "\n".join(lines).replace("''", "") + "\n"


def read(folder: Path, content: str, expectation: str, guides: str = "") -> tuple[Measurements, ReadReport]:
    readings: list[ReadReport] = []
    layout = Layout(expectation=expectation, controls=("none",), guides=guides)
    return read_table(write(folder, content), yeast(), layout, collect=readings.append), readings[0]


def found(m: Measurements) -> dict[tuple[str, frozenset[str]], tuple[float, float]]:
    index = yeast().genes
    out = {}
    for row in range(len(m)):
        genes = frozenset(index.standard[m.genes[g]] for g in m.gene[m.offsets[row] : m.offsets[row + 1]])
        out[m.phenotypes[m.phenotype[row]].name, genes] = (float(m.value[row]), float(m.sd[row]))
    return out


def score(expectation: str, growth: dict[tuple[str, ...], float], set_: tuple[str, ...]) -> float:
    """Return the score of a mutant as the definitions have it."""
    x, w = growth[set_], growth[()]
    return {"additive-log": math.log(x) - math.log(w), "additive": x - w}.get(expectation, x / w)


def plain(expectation: str, growth: dict[tuple[str, ...], float], set_: tuple[str, ...]) -> float:
    """Return fitness, epsilon or tau of a mutant, by its number of genes, as the definitions have it."""
    f = {part: score(expectation, growth, part) for part in growth}
    singles = [f[(name,)] for name in set_]
    if len(set_) < 2:
        return f[set_]
    pairs = [f[pair] for pair in combinations(set_, 2)]
    if expectation.startswith("additive"):
        return f[set_] - sum(singles) if len(set_) == 2 else f[set_] - sum(pairs) + sum(singles)
    if expectation == "minimum":
        return f[set_] - min(singles)
    if len(set_) == 2:
        return float(epsilon(f[set_], *singles))
    return float(tau(f[set_], *pairs, *singles))


PHENOTYPE = {
    "multiplicative": ("fitness", "fitness", "epsilon", "tau"),
    "minimum": ("fitness", "fitness", "epsilon_minimum"),
    "additive-log": ("log_fitness", "log_fitness", "epsilon_log", "tau_log"),
    "additive": ("relative_rate", "relative_rate", "epsilon_additive", "tau_additive"),
}


@pytest.mark.parametrize("expectation", EXPECTATIONS)
def test_each_formula_is_its_plain_definition(tmp_path: Path, expectation: str) -> None:
    m, report = read(tmp_path, text(GROWTH), expectation)
    got = found(m)
    for set_ in SETS:
        names = PHENOTYPE[expectation]
        if len(set_) >= len(names):
            continue
        value, sd = got.pop((names[len(set_)], frozenset(set_)))
        assert value == pytest.approx(plain(expectation, GROWTH, set_), rel=1e-12, abs=1e-14)
        if not set_:
            w, own = GROWTH[()], SD[()]
            assert sd == pytest.approx(own if expectation == "additive" else own / w)
            continue
        # First-order propagation: every measured growth is one number, moved by a little.
        variance = 0.0
        for part in SETS:
            moved = [plain(expectation, GROWTH | {part: GROWTH[part] + h}, set_) for h in (1e-6, -1e-6)]
            variance += ((moved[0] - moved[1]) / 2e-6 * SD[part]) ** 2
        assert sd == pytest.approx(math.sqrt(variance), rel=1e-6, abs=1e-9)
    # What is left is the fitness of double and triple mutants.
    assert {len(genes) for _, genes in got} == {2, 3}
    assert {name for name, _ in got} == {PHENOTYPE[expectation][0]}
    for (_, genes), (value, _) in got.items():
        set_ = tuple(name for name in NAMES if name in genes)
        assert value == pytest.approx(score(expectation, GROWTH, set_), rel=1e-12)
    lost = {"no tau: none is defined for the minimum": 1} if expectation == "minimum" else {}
    assert report.dropped == lost


def test_the_wild_type_is_that_of_the_condition_and_replicate(tmp_path: Path) -> None:
    content = (
        "genes,rep1,rep2,condition\nwt,2,4,a\nwt,4,4,a\nwt,10,20,b\nSGS1,3,1,a\nSGS1,5,5,b\nSRS2,1,1,c\n"
    )
    m, report = read(tmp_path, content, "multiplicative")
    sgs1 = m.order == 1
    assert sorted(m.value[sgs1]) == pytest.approx([1 / 4, 1 / 4, 1 / 2, 1])
    assert report.dropped == {"no wild type in the same condition and replicate": 2}
    # Two rows of the wild type without sd: the spread tells how well their mean is known.
    assert np.isnan(m.sd[sgs1]).all()


def test_interactions_that_lack_a_part_are_counted_and_not_guessed(tmp_path: Path) -> None:
    lacking = {set_: x for set_, x in GROWTH.items() if set_ not in (("HO",), ("SGS1", "SRS2"))}
    m, report = read(tmp_path, text(lacking), "multiplicative")
    assert {name for name, _ in found(m)} == {"fitness"}
    assert report.dropped == {
        "no epsilon: a single mutant is missing": 2,
        "no tau: a single or double mutant is missing": 1,
    }
    m, report = read(tmp_path, text(GROWTH | {("HO",): 0.0}, {}), "additive-log")
    assert report.dropped == {
        "growth, of the mutant or the wild type, that is not above 0": 1,
        "no epsilon: a single mutant is missing": 2,
        "no tau: a single or double mutant is missing": 1,
    }
    assert np.isnan(m.sd).all()


def test_singles_of_several_rows_are_averaged(tmp_path: Path) -> None:
    content = "genes,rate,sd\nwt,2,0\nSGS1,1,0.1\nSGS1,1.5,0.3\nSRS2,1,0\nSGS1;SRS2,1,0\n"
    m, _ = read(tmp_path, content, "multiplicative")
    value, sd = found(m)["epsilon", frozenset(("SGS1", "SRS2"))]
    assert value == pytest.approx(0.5 - 0.625 * 0.5)
    assert sd == pytest.approx(0.5 * math.sqrt(0.1**2 + 0.3**2) / 2 / 2)


def test_guides_of_a_gene_are_averaged(tmp_path: Path) -> None:
    content = (
        "geneA,geneB,rep1,rep2\nwt,wt,2,4\nSGS1_g1,wt,1,2\nSGS1_g2,wt,1.5,2\nSRS2_g1,wt,1,4\n"
        "SGS1_g1,SRS2_g1,1,1\nSGS1_g2,SRS2_g1,0.5,2\n"
    )
    m, report = read(tmp_path, content, "multiplicative", guides="suffix")
    assert not report.dropped
    epsilon = [definition.name for definition in m.phenotypes].index("epsilon")
    replicates = np.array(m.replicates)[m.replicate]
    got = dict(zip(replicates[m.phenotype == epsilon], m.value[m.phenotype == epsilon], strict=True))
    assert got == {
        "SGS1_g1 SRS2_g1 rep1": pytest.approx(1 / 2 - 1.25 / 2 * 1 / 2),
        "SGS1_g2 SRS2_g1 rep1": pytest.approx(0.5 / 2 - 1.25 / 2 * 1 / 2),
        "SGS1_g1 SRS2_g1 rep2": pytest.approx(1 / 4 - 2 / 4 * 4 / 4),
        "SGS1_g2 SRS2_g1 rep2": pytest.approx(2 / 4 - 2 / 4 * 4 / 4),
    }


def test_what_growth_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="needs rows of the wild type"):
        read(tmp_path, "genes,rate\nSGS1,1\n", "multiplicative")
    with pytest.raises(SourceError, match="needs one phenotype, growth of cells, and the table has a, b"):
        read(tmp_path, "genes,value,phenotype\nwt,1,a\nSGS1,1,b\n", "multiplicative")
    with pytest.raises(ConfigError, match="--from-growth 'sum' is not known: choose one of multiplicative"):
        Layout(expectation="sum")
    m, _ = read(tmp_path, text(GROWTH), "")
    with pytest.raises(ConfigError, match="--from-growth 'sum' is not known"):
        from_growth(m, "sum")
