"""Which phenotypes and conditions a dataset has, from the studies, traits and environments of its rows.

Legend: m measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Environment, PhenotypeDefinition
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants.ragged import first_of_each, ranks

Ints = NDArray[np.int64]
Definition = tuple[str, PhenotypeDefinition]
_SHARED = ("unit", "direction", "level", "min_order")
"""What studies must agree on before their numbers are one phenotype."""


def name_phenotypes(measurements: Measurements, studies: str) -> tuple[tuple[Phenotype, ...], Ints]:
    """Return the phenotypes, those of fewest genes first, then by name, and the position [m] of every row's.

    A trait is a phenotype of its own, ``phenotype:trait``, in the group ``phenotype``; with
    ``studies="apart"`` a study is too, ``study:phenotype``. The source of a phenotype is that of all its
    traits, since features made from one trait of a screen tell of the others.

    Raises
    ------
    DatasetError
        If studies mean different things by one name, or two phenotypes come out with one name.
    """
    m = measurements
    rank = ranks(m.study, m.phenotype, m.trait)
    found: dict[tuple[str, ...], list[Definition]] = {}
    keys = []
    for row in first_of_each(rank):
        study, definition = m.studies[m.study[row]].name, m.phenotypes[m.phenotype[row]]
        key = (study if studies == "apart" else "", definition.name, m.traits[m.trait[row]])
        found.setdefault(key, []).append((study, definition))
        keys.append(key)
    built = {key: _phenotype(key, definitions) for key, definitions in found.items()}
    ordered = sorted(built, key=lambda key: (built[key].min_order, key))
    names = [built[key].name for key in ordered]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DatasetError(f"two phenotypes are both called {twice[0]!r}: rename one, or select one of them")
    position = {key: place for place, key in enumerate(ordered)}
    places = np.array([position[key] for key in keys], dtype=np.int64)
    return tuple(built[key] for key in ordered), places[rank]


def _phenotype(key: tuple[str, ...], definitions: Sequence[Definition]) -> Phenotype:
    definitions = sorted(definitions, key=lambda pair: (pair[0], pair[1].id))
    (study, first), *others = definitions
    for other_study, other in others:
        for name in _SHARED:
            if getattr(first, name) != getattr(other, name):
                raise DatasetError(
                    f"{first.name!r} has {name} {getattr(first, name)!r} in {study} and "
                    f"{getattr(other, name)!r} in {other_study}: keep the studies apart, or select one"
                )
    descriptions = dict.fromkeys(d.description for _, d in definitions if d.description)
    return Phenotype(
        name=":".join(part for part in key if part),
        unit=first.unit,
        source=" + ".join(dict.fromkeys(f"{study}:{d.name}" for study, d in definitions)),
        min_order=first.min_order,
        strong=max(d.strong for _, d in definitions),
        description="; ".join(descriptions),
        group=":".join(part for part in key[:2] if part) if key[2] else "",
    )


def name_conditions(environments: Sequence[Environment], environment: Ints) -> tuple[tuple[str, ...], Ints]:
    """Return the conditions, the reference first, and the position [m] of every row's.

    The reference is the environment with the fewest compounds, then the one with most rows, then the first by
    name. Environments without rows are left out.
    """
    first: dict[str, int] = {}
    same = np.array([first.setdefault(e.id, place) for place, e in enumerate(environments)], np.int64)
    environment = same[environment]
    rows = np.bincount(environment, minlength=len(environments))
    used = [e for e in range(len(environments)) if rows[e]]
    spelled = [str(environments[e]) for e in used]
    names = {
        e: name if spelled.count(name) == 1 else f"{name} [{environments[e].id[:8]}]"
        for e, name in zip(used, spelled, strict=True)
    }
    order = sorted(used, key=lambda e: (len(environments[e].compounds), -rows[e], names[e]))
    place = np.full(max(len(environments), 1), -1, np.int64)
    place[order] = np.arange(len(order))
    return tuple(names[e] for e in order), place[environment]


def chosen_condition(conditions: Sequence[str], name: str) -> int:
    """Return the position of a condition; raises ``ConfigError`` naming those there are."""
    if name not in conditions:
        known = "; ".join(conditions) or "none"
        raise ConfigError(f"no measurement was made in environment {name!r}; there are: {known}")
    return list(conditions).index(name)
