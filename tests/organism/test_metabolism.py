"""Gene rules, dead reactions and the storage of a metabolism."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from wildtype.errors import ConfigError, SourceError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Metabolism
from wildtype.organism.gene_rules import Rule, minimal_complexes, parse_rule, rule_genes
from wildtype.organism.metabolism import ABSENT, read_metabolism

GENES = ("b0001", "b0002", "YAL001C-A", "gAnd", "orf1", "b0006", "b0007")
INDEX = GeneIndex([*GENES, "not-in-any-rule"])


def holds(rule: Rule, present: set[str]) -> bool:
    """The definition: a gene is true when present."""
    if isinstance(rule, str):
        return rule in present
    operator, operands = rule
    values = [holds(operand, present) for operand in operands]
    return all(values) if operator == "and" else any(values)


rules = st.recursive(
    st.sampled_from(GENES),
    lambda inner: st.tuples(
        st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple)
    ),
    max_leaves=10,
)


def spell(rule: Rule, draw: Any) -> str:
    """Write a rule in one of its many spellings."""
    if isinstance(rule, str):
        return f"({rule})" if draw(st.booleans()) else rule
    words = {"and": ["and", "AND", "And", "&", "&&"], "or": ["or", "OR", "Or", "|", "||"]}[rule[0]]
    return "(" + f" {draw(st.sampled_from(words))} ".join(spell(r, draw) for r in rule[1]) + ")"


def network(texts: list[str]) -> Metabolism:
    count = len(texts)
    return Metabolism.build(
        [f"R{i}" for i in range(count)],
        ["m_c"],
        sparse.csr_array(np.ones((1, count))),
        np.zeros(count),
        np.full(count, 1000.0),
        np.eye(1, count).reshape(-1),
        texts,
    )


@given(rules, st.data())
def test_parse_keeps_the_meaning_of_every_spelling(rule: Rule, data: st.DataObject) -> None:
    parsed = parse_rule(spell(rule, data.draw))
    assert parsed is not None
    for size in range(len(GENES) + 1):
        for present in itertools.combinations(GENES, size):
            assert holds(parsed, set(present)) == holds(rule, set(present))


def test_and_binds_tighter_than_or() -> None:
    assert parse_rule("a or b and c") == ("or", ("a", ("and", ("b", "c"))))
    assert parse_rule("(a or b) and c") == ("and", (("or", ("a", "b")), "c"))
    assert parse_rule("   ") is None
    assert rule_genes("(a OR b) and And1") == {"a", "b", "And1"}


@pytest.mark.parametrize("text", ["a and", "or b", "(a or b", "a b", "a or b)", "()", "and", "a and or b"])
def test_malformed_rules_are_refused_by_name(text: str) -> None:
    with pytest.raises(SourceError, match=r"reaction 'PFK' is not well formed"):
        parse_rule(text, "reaction 'PFK'")


@pytest.mark.slow
def test_deep_nesting_and_huge_expansions_are_refused() -> None:
    with pytest.raises(SourceError, match="nested deeper than 200"):
        parse_rule("(" * 5000 + "a" + ")" * 5000)
    many = " and ".join(f"(a{i} or b{i})" for i in range(17))
    parsed = parse_rule(many)
    assert parsed is not None
    with pytest.raises(SourceError, match=r"more than 100,000 complexes"):
        minimal_complexes(parsed)
    small = parse_rule(" and ".join(f"(a{i} or b{i})" for i in range(10)))
    assert small is not None
    assert len(minimal_complexes(small)) == 1024


@given(rules)
def test_complexes_are_minimal_and_satisfy_the_rule(rule: Rule) -> None:
    complexes = minimal_complexes(rule)
    assert len(set(complexes)) == len(complexes)
    for a, b in itertools.permutations(complexes, 2):
        assert not a <= b
    for size in range(len(GENES) + 1):
        for present in itertools.combinations(GENES, size):
            assert any(c <= set(present) for c in complexes) == holds(rule, set(present))


@settings(max_examples=60)
@given(
    st.lists(st.none() | rules, min_size=1, max_size=6),
    st.lists(
        st.dictionaries(st.integers(0, len(INDEX) - 1), st.sampled_from(list(Kind)), max_size=5), max_size=8
    ),
    st.data(),
)
def test_dead_reactions_equal_the_rules_evaluated_mutant_by_mutant(
    chosen: list[Rule | None], mutants: list[dict[int, Kind]], data: st.DataObject
) -> None:
    texts = ["" if rule is None else spell(rule, data.draw) for rule in chosen]
    m = network(texts)
    sets = [sorted(mutant) for mutant in mutants]
    kinds = [int(mutant[g]) for mutant, s in zip(mutants, sets, strict=True) for g in s]
    offsets = np.cumsum([0] + [len(s) for s in sets])
    table = MutantTable.build([g for s in sets for g in s], offsets, kind=np.array(kinds, np.uint8))
    expected = np.ones((len(mutants), len(chosen)), bool)
    strict = expected.copy()
    for i, mutant in enumerate(mutants):
        gone = {INDEX.names[g] for g, kind in mutant.items() if kind is Kind.ABSENT}
        for r, rule in enumerate(chosen):
            if rule is not None:
                expected[i, r] = holds(rule, set(GENES) - gone)
                strict[i, r] = not rule_genes(texts[r]) & gone
    np.testing.assert_array_equal(m.alive(INDEX, table), expected)
    np.testing.assert_array_equal(m.alive(INDEX, table, rule="all"), strict)
    dead = m.dead_reactions(INDEX, table)
    assert dead.nnz == (~expected).sum()
    np.testing.assert_array_equal(dead.toarray(), ~expected)
    np.testing.assert_array_equal(m.has_rule, [rule is not None for rule in chosen])


def test_all_reads_genes_that_the_expansion_absorbs() -> None:
    m = network(["b0001 or (b0001 and b0002)"])
    table = MutantTable.from_sets([[1]])
    assert m.alive(INDEX, table).all()
    assert not m.alive(INDEX, table, rule="all").any()
    with pytest.raises(ConfigError, match="'any' is not a way to read gene rules"):
        m.alive(INDEX, table, rule="any")


def test_the_kind_that_removes_a_gene() -> None:
    assert ABSENT == Kind.ABSENT


def test_arrays_round_trip_without_pickle(tmp_path: Path) -> None:
    m = network(["", "b0001 or b0002", "(b0001 and orf1) or YAL001C-A"])
    path = tmp_path / "m.npz"
    np.savez(path, **m.to_arrays())  # type: ignore[arg-type]
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    again = Metabolism.from_arrays(arrays)
    assert (again.reactions, again.metabolites, again.genes, again.rules) == (
        m.reactions,
        m.metabolites,
        m.genes,
        m.rules,
    )
    assert again.sha256 == m.sha256
    for name in ("stoichiometry", "complex_gene", "reaction_complex"):
        np.testing.assert_array_equal(getattr(again, name).toarray(), getattr(m, name).toarray())
    np.testing.assert_array_equal(again.has_rule, m.has_rule)
    del arrays["rules"]
    with pytest.raises(SourceError, match="lacks the array 'rules'"):
        Metabolism.from_arrays(arrays)
    with pytest.raises(SourceError, match="has format 99"):
        Metabolism.from_arrays({**m.to_arrays(), "format": np.array(99)})


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SourceError, match="do not fit"):
        Metabolism.build(
            ["R1"], ["m_c"], sparse.csr_array(np.ones((1, 2))), np.zeros(1), np.ones(1), np.ones(1), [""]
        )


@pytest.mark.slow
def test_read_metabolism_agrees_with_cobra_and_keeps_what_it_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cobra.io import read_sbml_model, save_yaml_model

    from wildtype.sources.insilico.models import model_file

    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    path = model_file("ecoli-core")
    m = read_metabolism(path)
    model = read_sbml_model(str(path))
    assert (len(m.metabolites), len(m.reactions), len(m.genes)) == (72, 95, 137)
    assert set(m.genes) == {g.id for g in model.genes}
    everything = {g.id for g in model.genes}
    index = GeneIndex(sorted(everything))
    alive = m.alive(index, MutantTable.from_matrix(np.arange(137)[:, None]))
    for g, gene in enumerate(index.names):
        for r, name in enumerate(m.reactions):
            assert alive[g, r] == model.reactions.get_by_id(name).gpr.eval(knockouts={gene})

    kept = list((tmp_path / "cache" / "metabolism").glob("*.npz"))
    assert len(kept) == 1
    monkeypatch.setattr("wildtype.organism.metabolism._read_model", lambda path: pytest.fail("parsed again"))
    assert read_metabolism(path).sha256 == m.sha256
    monkeypatch.undo()
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    kept[0].write_bytes(b"damaged")
    assert read_metabolism(path).sha256 == m.sha256
    assert kept[0].stat().st_size > 100

    yaml = tmp_path / "core.yml"
    save_yaml_model(model, str(yaml))
    assert read_metabolism(yaml, cache=False).rules == m.rules


def test_read_metabolism_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no metabolic model"):
        read_metabolism(tmp_path / "missing.xml")
    other = tmp_path / "model.txt"
    other.write_text("x")
    with pytest.raises(SourceError, match="no metabolic model that can be read"):
        read_metabolism(other)
    bad = tmp_path / "model.yml"
    bad.write_text("- not\n- a model\n")
    with pytest.raises(SourceError, match="cannot be parsed as a metabolic model"):
        read_metabolism(bad)


@pytest.mark.real
@pytest.mark.slow
def test_yeast_consensus_model(mirror: Path) -> None:
    path = mirror / "yeast-GEM_9.0.2.yml.gz"
    m = read_metabolism(path)
    assert (len(m.reactions), len(m.metabolites), len(m.genes)) == (4131, 2806, 1161)
    assert m.stoichiometry.shape == (2806, 4131)
    index = GeneIndex(m.genes)
    rng = np.random.default_rng(0)
    table = MutantTable.from_sets([rng.choice(1161, 3, replace=False) for _ in range(20)])
    alive = m.alive(index, table)
    parsed = [parse_rule(text) for text in m.rules]
    for i, genes in enumerate(table.sets()):
        present = set(m.genes) - {m.genes[g] for g in genes}
        np.testing.assert_array_equal(alive[i], [rule is None or holds(rule, present) for rule in parsed])


@pytest.mark.parametrize("name", ["model.json", "model.json.gz"])
def test_a_rule_that_cannot_be_parsed_is_an_error_and_no_gene_is_lost(tmp_path: Path, name: str) -> None:
    model = {
        "id": "small", "compartments": {"c": "cell"}, "version": "1",
        "genes": [{"id": "g1", "name": ""}, {"id": "g2", "name": ""}],
        "metabolites": [{"id": "a_c", "name": "a", "compartment": "c"}],
        "reactions": [
            {"id": "r1", "name": "", "metabolites": {"a_c": 1.0}, "lower_bound": 0.0, "upper_bound": 10.0,
             "gene_reaction_rule": "g1 and g2"},
        ],
    }  # fmt: skip
    opened = gzip.open if name.endswith(".gz") else open
    path = tmp_path / name
    with opened(path, "wt", encoding="utf-8") as handle:
        json.dump(model, handle)
    assert sorted(read_metabolism(path, cache=False).genes) == ["g1", "g2"]
    model["reactions"][0]["gene_reaction_rule"] = "g1 and (g2"  # type: ignore[index]
    with opened(path, "wt", encoding="utf-8") as handle:
        json.dump(model, handle)
    with pytest.raises(SourceError, match="alformed"):
        read_metabolism(path, cache=False)
