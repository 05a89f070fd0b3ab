"""The Gene Ontology itself: terms and what they are part of, from an OBO file.

Only what propagating annotations needs is read: id, name, namespace, is_a and part_of, alternative ids, and
which terms are obsolete. Relations to terms of another namespace are left out.

Legend: t current terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.errors import SourceError
from wildtype.sources.text import REMEDY, read_text

KINDS = ("is_a", "part_of")
"""Relations along which an annotation is true of the parent too."""
MAX_STEPS = 10
"""A chain of replacements longer than this goes in a circle."""


@dataclass
class _Stanza:
    """The tags of one stanza that are read, and the line it begins in."""

    line: int
    id: str = ""
    name: str = ""
    namespace: str = ""
    parents: list[tuple[int, str]] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    obsolete: bool = False
    replaced_by: str = ""


@dataclass(frozen=True, eq=False)
class Ontology:
    """Terms and their parents.

    Attributes
    ----------
    ids, names, namespaces : tuple of t str
        The current terms, in the order of the file.
    parents : csr [t, t] of float64
        1 where the column is a parent of the row: is_a or part_of, within one namespace.
    alternatives : mapping of str to str
        Alternative id to the current term that took it over.
    obsolete : mapping of str to str
        Obsolete id to the id that replaces it; empty where none does.
    version : str
        Release of the ontology.
    path : Path
        The file, for messages.
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    parents: sparse.csr_array
    alternatives: Mapping[str, str]
    obsolete: Mapping[str, str]
    version: str
    path: Path = Path()

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every current term."""
        return {term: i for i, term in enumerate(self.ids)}

    def resolve(self, term: str) -> tuple[int, str]:
        """Return the position of a term and how it was found.

        The second value is empty for a current term, else ``alternative id`` or ``replaced term``. Without a
        term the position is -1 and the second value is ``obsolete term`` or ``unknown term``.
        """
        how = ""
        for _ in range(MAX_STEPS):
            if term in self.position:
                return self.position[term], how
            if term in self.alternatives:
                term, how = self.alternatives[term], how or "alternative id"
            elif term in self.obsolete:
                term, how = self.obsolete[term], "replaced term"
                if not term:
                    return -1, "obsolete term"
            else:
                return -1, "unknown term"
        return -1, "obsolete term"

    @cached_property
    def ancestors(self) -> sparse.csr_array:
        """1 where the column is the row itself or above it, csr [t, t]; made parents first."""
        t = len(self.ids)
        above: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * t
        # Parents first: the ancestors of a term are those of its parents and the term itself.
        for i in _parents_first(self.parents):
            mine = self.parents.indices[self.parents.indptr[i] : self.parents.indptr[i + 1]]
            above[i] = np.unique(np.concatenate([[i], *(above[p] for p in mine)]))
        indptr = np.cumsum([0, *(len(part) for part in above)])
        columns = np.concatenate(above) if t else np.zeros(0, np.int64)
        return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=(t, t))


def _parents_first(parents: sparse.csr_array) -> list[int]:
    """Return the terms so that every parent comes before its children; shorter where there is a cycle."""
    waiting = np.diff(parents.indptr)
    children = sparse.csr_array(parents.T)
    order = np.flatnonzero(waiting == 0).tolist()
    for i in order:  # grows while it is walked
        for child in children.indices[children.indptr[i] : children.indptr[i + 1]]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(int(child))
    return order


def read_obo(path: str | Path) -> Ontology:
    """Read an ontology from an OBO file, plain or gzip-compressed.

    Raises
    ------
    SourceError
        If the file is damaged, defines a term twice, names a parent that it does not define, or has a cycle.
    """
    path = Path(path)
    stanzas, version, default = _stanzas(path)
    terms = [s for s in stanzas if not s.obsolete]
    obsolete = {s.id: s.replaced_by for s in stanzas if s.obsolete}
    position: dict[str, int] = {}
    for stanza in stanzas:
        if not stanza.id or (not stanza.obsolete and not (stanza.namespace or default)):
            raise _wrong(path, stanza.line, "a term without id or namespace", "both")
        if stanza.id in position:
            raise _wrong(path, stanza.line, f"{stanza.id} a second time", "every term once")
        position[stanza.id] = -1
    position = {s.id: i for i, s in enumerate(terms)}
    namespaces = [s.namespace or default for s in terms]
    edges = []
    for i, stanza in enumerate(terms):
        for line, parent in stanza.parents:
            if parent not in position:
                raise _wrong(path, line, f"the parent {parent!r}", "a current term that the file defines")
            # part_of can lead from a process to a component; blocks are of one namespace.
            if namespaces[position[parent]] == namespaces[i]:
                edges.append((i, position[parent]))
    pairs = np.array(sorted(set(edges)), dtype=np.int64).reshape(-1, 2)
    t = len(terms)
    matrix = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(t, t))
    # Kahn's algorithm leaves out exactly the terms in a cycle and below it.
    ordered = set(_parents_first(matrix))
    if len(ordered) < t:
        inside = next(i for i in range(t) if i not in ordered)
        raise SourceError(
            f"{path}: {terms[inside].id} is in, or below, a circle of is_a and part_of, expected none: "
            f"take go-basic.obo or {REMEDY}"
        )
    return Ontology(
        tuple(s.id for s in terms),
        tuple(s.name for s in terms),
        tuple(namespaces),
        matrix,
        {other: s.id for s in stanzas for other in s.alternatives if other not in position},
        obsolete,
        version,
        path,
    )


def _stanzas(path: Path) -> tuple[list[_Stanza], str, str]:
    """Return the terms as the file lists them, its version, and the namespace of terms that name none."""
    header = {"data-version": "", "default-namespace": ""}
    out: list[_Stanza] = []
    stanza: _Stanza | None = None
    inside = False  # of any stanza; terms only are kept
    for number, raw in enumerate(read_text(path).split("\n"), 1):
        line = raw.strip()
        if number == 1 and not line.startswith("format-version:"):
            raise _wrong(path, 1, repr(line[:40]), "format-version: and the header of an OBO file")
        if not line or line.startswith("!"):
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise _wrong(path, number, repr(line[:40]), "a stanza such as [Term]")
            inside = True
            stanza = _Stanza(number) if line == "[Term]" else None
            if stanza is not None:
                out.append(stanza)
            continue
        tag, colon, value = line.partition(":")
        if not colon:
            raise _wrong(path, number, repr(line[:40]), "a tag and its value")
        if not inside and tag in header:
            header[tag] = value.strip()
        elif stanza is not None:
            _tag(stanza, number, tag, value)
    if not out:
        raise SourceError(f"{path} holds no [Term], expected thousands: {REMEDY}")
    return out, header["data-version"].removeprefix("releases/"), header["default-namespace"]


def _tag(stanza: _Stanza, line: int, tag: str, value: str) -> None:
    value = value.strip()
    if tag != "name":
        # "GO:1 ! name {modifiers}": the comment repeats the name, and modifiers change no relation.
        value = value.partition(" ! ")[0].partition(" {")[0].strip()
    if tag == "relationship":
        tag, _, value = value.partition(" ")
    if tag in KINDS:
        stanza.parents.append((line, value.strip()))
    elif tag == "alt_id":
        stanza.alternatives.append(value)
    elif tag == "is_obsolete":
        stanza.obsolete = value == "true"
    elif tag in ("id", "name", "namespace", "replaced_by"):
        setattr(stanza, tag, value)


def _wrong(path: Path, line: int, received: str, expected: str) -> SourceError:
    return SourceError(f"{path}, line {line}: received {received}, expected {expected}; {REMEDY}")
