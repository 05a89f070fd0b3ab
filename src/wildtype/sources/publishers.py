"""Every publisher whose files can be read, from one table of the modules that describe them."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from pathlib import Path

from wildtype.errors import SourceError
from wildtype.sources.publisher import Publisher, RemoteFile

MODULES = (
    "screens.kuzmin2018",
    "screens.kuzmin2020",
    "screens.tau_sga",
    "screens.costanzo2016",
    "screens.costanzo2010",
    "screens.baryshnikova2010",
    "screens.celaj2020",
    "screens.jonikas2009",
    "screens.diazmejia2018",
    "screens.growth",
    "traits.calmorph",
    "traits.deleteome",
    "traits.messner2023",
    "traits.phenome",
    "graphs.string",
    "graphs.biogrid",
    "graphs.sgd_interactions",
    "graphs.irefindex",
    "graphs.pair_lists",
    "graphs.complexes",
    "graphs.regulation",
    "graphs.regulatory_priors",
    "graphs.tflink",
    "graphs.ontology",
    "graphs.obo",
    "graphs.go_annotations",
    "genes.sgd",
    "genes.coordinates",
    "genes.uniprot",
    "genes.abundance",
    "metabolism",
)
"""Modules below ``wildtype.sources.yeast`` that describe publishers, in the order of listings."""


@cache
def publishers() -> dict[str, Publisher]:
    """Return every publisher by name; raises ``SourceError`` if two have one name."""
    known: dict[str, Publisher] = {}
    for name in MODULES:
        for value in vars(import_module(f"wildtype.sources.yeast.{name}")).values():
            for publisher in value if isinstance(value, tuple) else (value,):
                if (
                    isinstance(publisher, Publisher)
                    and known.setdefault(publisher.name, publisher) is not publisher
                ):
                    raise SourceError(f"two publishers are called {publisher.name!r}: rename one")
    return known


def find_publisher(name: str) -> Publisher:
    """Return the publisher of that name; raises ``SourceError`` naming the nearest or all names."""
    known = publishers()
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known publishers: {', '.join(known)}"
        raise SourceError(f"there is no publisher {name!r}; {hint}")
    return known[name]


def select(name: str) -> tuple[Publisher, tuple[RemoteFile, ...]]:
    """Return the publisher and files that ``publisher`` or ``publisher/file`` names.

    Raises
    ------
    SourceError
        Naming what there is instead.
    """
    key, _, file = name.partition("/")
    publisher = find_publisher(key)
    if not file:
        return publisher, publisher.files
    chosen = tuple(remote for remote in publisher.files if file in (remote.name, *remote.aliases))
    if not chosen:
        names = ", ".join(remote.name for remote in publisher.files)
        raise SourceError(f"publisher {key!r} has no file {file!r}; it has {names}")
    return publisher, chosen


def owners(path: str | Path) -> list[tuple[Publisher, RemoteFile]]:
    """Return the publishers' files that a file's name may stand for, most often one."""
    name = Path(path).name
    return [
        (publisher, remote)
        for publisher in publishers().values()
        for remote in publisher.files
        if name.removesuffix(".gz")
        in {Path(known).name.removesuffix(".gz") for known in (remote.name, *remote.aliases)}
    ]
