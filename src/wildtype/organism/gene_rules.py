"""Boolean gene rules (GPRs): parsed by a small grammar and expanded to minimal complexes.

rule := all ("or" all)*      all := atom ("and" atom)*      atom := gene | "(" rule ")"
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wildtype.errors import SourceError

MAX_COMPLEXES = 100_000
MAX_DEPTH = 200

Rule = str | tuple[str, tuple["Rule", ...]]
"""A gene name, or ("and" | "or", operands)."""

_TOKEN = re.compile(r"[()]|&+|\|+|[^\s()&|]+")
_OPERATORS = {"and": "and", "&": "and", "&&": "and", "or": "or", "|": "or", "||": "or"}


def rule_genes(text: str) -> set[str]:
    """Return every gene that a rule lists, whether or not it decides anything."""
    return {t for t in _TOKEN.findall(text) if t not in "()" and t.lower() not in _OPERATORS}


def parse_rule(text: str, where: str = "a rule") -> Rule | None:
    """Parse a boolean gene rule: names, ``and``/``or`` in any case (also ``&``, ``|``), parentheses.

    ``and`` binds tighter. Returns None for an empty rule.

    Raises
    ------
    SourceError
        If the rule is not well formed or nested deeper than 200 levels; ``where`` is named in the message.
    """
    tokens = _TOKEN.findall(text)
    position = 0

    def fail(problem: str) -> SourceError:
        shown = text if len(text) <= 120 else text[:117] + "..."
        return SourceError(
            f"the gene rule of {where} is not well formed, {problem}: {shown!r}; correct it in the model"
        )

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def chain(operator: str, depth: int) -> Rule:
        nonlocal position
        operands = [chain("and", depth) if operator == "or" else atom(depth)]
        while _OPERATORS.get(peek().lower()) == operator:
            position += 1
            operands.append(chain("and", depth) if operator == "or" else atom(depth))
        return operands[0] if len(operands) == 1 else (operator, tuple(operands))

    def atom(depth: int) -> Rule:
        nonlocal position
        token = peek()
        if depth > MAX_DEPTH:
            raise fail(f"nested deeper than {MAX_DEPTH} levels")
        if token in ("", ")") or token.lower() in _OPERATORS:
            raise fail(f"a gene is missing before {token!r}" if token else "it ends where a gene should be")
        position += 1
        if token != "(":
            return token
        inner = chain("or", depth + 1)
        if peek() != ")":
            raise fail("a parenthesis is not closed")
        position += 1
        return inner

    if not tokens:
        return None
    rule = chain("or", 0)
    if position < len(tokens):
        raise fail(f"{peek()!r} is where an operator or the end is expected")
    return rule


def _absorb(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Keep the minimal sets only: a complex that contains another one decides nothing."""
    # Smallest first: a set can only contain sets that were kept before it.
    unique = sorted(set(sets), key=lambda s: (len(s), sorted(s)))
    if not unique or len(unique[0]) == len(unique[-1]):
        return unique
    by_gene: dict[str, list[frozenset[str]]] = {}
    kept = []
    for candidate in unique:
        if not any(small <= candidate for gene in candidate for small in by_gene.get(gene, ())):
            kept.append(candidate)
            # One gene per kept set is enough: a set that contains it holds that gene too.
            by_gene.setdefault(min(candidate), []).append(candidate)
    return kept


def minimal_complexes(rule: Rule, where: str = "a rule") -> list[frozenset[str]]:
    """Return the minimal gene sets that satisfy a rule, smallest first (irredundant disjunctive normal form).

    Raises
    ------
    SourceError
        If the expansion passes 100,000 complexes.
    """
    if isinstance(rule, str):
        return [frozenset((rule,))]
    operator, operands = rule
    parts = [minimal_complexes(operand, where) for operand in operands]
    if operator == "or":
        return _absorb(s for part in parts for s in part)
    out = parts[0]
    for part in parts[1:]:
        if len(out) * len(part) > MAX_COMPLEXES:
            raise SourceError(
                f"the gene rule of {where} expands to more than {MAX_COMPLEXES:,} complexes "
                f"({len(out):,} × {len(part):,}): simplify the rule in the model"
            )
        out = _absorb(a | b for a in out for b in part)
    return out
