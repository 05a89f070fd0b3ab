"""`Query`: a selection of measurements, built condition by condition, and its SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wildtype.datasets.records import PerturbationKind
from wildtype.errors import DatasetError


@dataclass(frozen=True)
class Query:
    """Conditions on measurements, all of which must hold; every method returns a new query.

    A method that takes several values keeps rows with any of them; a second call narrows the selection::

        Query().study("kuzmin2018").phenotype("tau").order(3).genes(none=["YDL227C"]).p_below(0.05)

    Attributes
    ----------
    conditions : tuple of str
        SQL conditions on the view ``measurements``.

    Raises
    ------
    DatasetError
        By every method that keeps something: for no value, or one that is impossible there.
    """

    conditions: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The query as SQL; a store gives the same measurements for either."""
        where = "".join(f"\n{'AND' if i else 'WHERE'} {text}" for i, text in enumerate(self.conditions))
        return f"SELECT id FROM measurements{where}"

    def __str__(self) -> str:
        return self.sql

    def _and(self, *conditions: str) -> Query:
        return Query((*self.conditions, *conditions))

    def study(self, *names: str) -> Query:
        """Keep measurements of these studies."""
        return self._and(_among("study", names))

    def phenotype(self, *names: str) -> Query:
        """Keep measurements of these phenotypes."""
        return self._and(_among("phenotype", names))

    def trait(self, *names: str) -> Query:
        """Keep measurements of these traits or genes, for phenotypes that have them."""
        return self._and(_among("trait", names))

    def replicate(self, *names: str) -> Query:
        """Keep these of several independent measurements; ``""`` are those without a name."""
        return self._and(_among("replicate", names))

    def reference(self, *names: str) -> Query:
        """Keep measurements relative to these strains."""
        return self._and(_among("reference", names))

    def order(self, *counts: int) -> Query:
        """Keep mutants with these numbers of perturbed genes; a gene with two alleles counts once."""
        return self._and(_among("n_genes", counts))

    def genes(
        self,
        *,
        any: Iterable[str] | None = None,
        all: Iterable[str] | None = None,
        none: Iterable[str] | None = None,
    ) -> Query:
        """Keep mutants in which any, all or none of these genes (systematic names) are perturbed."""
        conditions = []
        if any is not None:
            conditions.append(f"list_has_any(genes, {_list('genes', any)})")
        if all is not None:
            conditions.append(f"list_has_all(genes, {_list('genes', all)})")
        if none is not None:
            conditions.append(f"NOT list_has_any(genes, {_list('genes', none)})")
        if not conditions:
            raise DatasetError("genes() received nothing, expected genes as any=, all= or none=")
        return self._and(*conditions)

    def kind(self, *kinds: PerturbationKind | str) -> Query:
        """Keep mutants all of whose perturbations are of these kinds, as in ``kind("deletion")``.

        The wild type, which has no perturbation, is kept; `order` leaves it out.
        """
        known = [kind.name.lower() for kind in PerturbationKind]
        names = [kind.name.lower() if isinstance(kind, PerturbationKind) else kind for kind in kinds]
        wrong = next((name for name in names if name not in known), None)
        if wrong is not None:
            raise DatasetError(f"there is no kind of perturbation {wrong!r}; known: {', '.join(known)}")
        return self._and(f"list_has_all({_list('kind', names)}, kinds)")

    def environment(
        self,
        *,
        medium: str | Sequence[str] | None = None,
        temperature: float | Sequence[float] | None = None,
        compound: str | Sequence[str] | None = None,
    ) -> Query:
        """Keep environments by medium (any of them), temperature in °C (any of them; NaN: not stated) and
        compound (all of them; ``()``: none at all).
        """
        conditions = []
        if medium is not None:
            conditions.append(_among("medium", [medium] if isinstance(medium, str) else medium))
        if temperature is not None:
            degrees = [temperature] if isinstance(temperature, int | float) else list(temperature)
            known = [value for value in degrees if not math.isnan(value)]
            parts = [_among("temperature", [float(value) for value in known])] if known or not degrees else []
            parts += ["temperature IS NULL"] if len(known) < len(degrees) else []
            conditions.append(f"({' OR '.join(parts)})")
        if compound is not None:
            names = [compound] if isinstance(compound, str) else list(compound)
            conditions.append(
                f"list_has_all(compounds, {_list('compound', names)})" if names else "len(compounds) = 0"
            )
        if not conditions:
            raise DatasetError("environment() received nothing, expected medium=, temperature= or compound=")
        return self._and(*conditions)

    def value(self, min: float | None = None, max: float | None = None) -> Query:
        """Keep values from `min` to `max`, both included."""
        if min is None and max is None:
            raise DatasetError("value() received nothing, expected min= or max=")
        conditions = [] if min is None else [f"value >= {_literal(min)}"]
        conditions += [] if max is None else [f"value <= {_literal(max)}"]
        return self._and(*conditions)

    def p_below(self, threshold: float) -> Query:
        """Keep measurements with a p-value below `threshold`; those without a p-value are left out."""
        return self._and(f"p < {_literal(threshold)}")


def _literal(value: Any) -> str:
    if isinstance(value, str):
        if "\0" in value:
            raise DatasetError(f"received {value!r}, expected text without a NUL character")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DatasetError(f"received {value!r}, expected text or a finite number")
    if isinstance(value, int):
        return str(int(value))
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"  # without an exponent it would be a decimal


def _among(column: str, values: Iterable[Any]) -> str:
    literals = [_literal(value) for value in _given(column, values)]
    return f"{column} = {literals[0]}" if len(literals) == 1 else f"{column} IN ({', '.join(literals)})"


def _list(what: str, values: Iterable[str]) -> str:
    return f"[{', '.join(_literal(value) for value in _given(what, values))}]"


def _given(what: str, values: Iterable[Any]) -> list[Any]:
    given = [values] if isinstance(values, str) else list(values)
    if not given:
        raise DatasetError(f"received no {what}, expected at least one")
    return given
