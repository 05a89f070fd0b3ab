"""One order of rows, names and perturbations for equal measurements, and the hash of them in that order.

Legend: M measurements · k perturbations of one mutant · G different genotypes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wildtype.datasets.measurements import NAMES, Measurements, bits, recoded
from wildtype.datasets.records import RECORD_VERSION
from wildtype.files import content_hash, content_hash_of
from wildtype.mutants.ragged import BLOCK, is_repeated, joint

FLOATS = ("value", "sd", "se", "p")


def canonical(measurements: Measurements) -> Measurements:
    """Return the same rows in an order that depends on their content alone.

    Names are ascending and only those in use, records without a name are ordered by id, the
    perturbations of a mutant as in `Genotype`, and rows by study, genotype, environment, phenotype, trait,
    replicate, reference and numbers.
    """
    ordered = with_ordered_perturbations(with_ordered_names(measurements))
    key = joint(
        [
            (ordered.study, len(ordered.studies)),
            (ordered.genotypes[1], len(ordered) + 1),
            *(
                (getattr(ordered, name), len(getattr(ordered, NAMES[name])))
                for name in ("environment", "phenotype", "trait", "replicate", "reference")
            ),
        ]
    )
    order = np.argsort(key, kind="stable")
    # Sorting by numbers is the costly part; few rows are equal in everything else.
    tied = np.flatnonzero(key[order][1:] == key[order][:-1])
    again = np.union1d(tied, tied + 1)  # numbers matter only where all else is equal
    rows = order[again]
    numbers = [bits(getattr(ordered, name)[rows]) for name in reversed(FLOATS)]
    order[again] = rows[np.lexsort((ordered.n[rows], *numbers, key[rows]))]
    return ordered.take(order)


def canonical_blocks(parts: Sequence[Measurements], most: int = BLOCK) -> Iterator[Measurements]:
    """Yield the rows of one study, given in parts, in the order of `canonical`, some ``most`` at a time.

    Rows are in the order of their genotypes' ids first. Ids are hashes, so that each range of them holds
    about as many rows as any other, and a range is put together and ordered by itself.
    """
    ranges = -(-sum(map(len, parts)) // most)
    if ranges <= 1:
        yield canonical(Measurements.concatenate(parts) if len(parts) > 1 else parts[0])
        return
    # 16 bits of an id are enough for thousands of ranges. A copy of the part computes them: what it keeps of
    # its genotypes, 50 bytes for each row, goes with it.
    head = [(replace(part).genotype_key[:, 0] >> np.uint64(48)).astype(np.int32) for part in parts]
    for number in range(ranges):
        mine = [part.take((at * ranges) >> 16 == number) for part, at in zip(parts, head, strict=True)]
        if any(map(len, mine)):
            yield canonical(Measurements.concatenate([rows for rows in mine if len(rows)]))


def with_ordered_names(measurements: Measurements) -> Measurements:
    """Return the same rows with every list of names and records ascending, without those not in use."""
    changed: dict[str, Any] = {}
    for code, names in NAMES.items():
        entries, codes = getattr(measurements, names), getattr(measurements, code)
        used = np.flatnonzero(
            np.bincount(codes[:1] if is_repeated(codes) else codes, minlength=len(entries))
        ).tolist()
        keys = {position: _key(entries[position]) for position in used}
        ascending = sorted(set(keys.values()))
        rank = {key: new for new, key in enumerate(ascending)}
        table = np.zeros(len(entries), np.int32)
        table[used] = [rank[keys[position]] for position in used]
        entry = {keys[position]: entries[position] for position in used}
        changed[names] = tuple(entry[key] for key in ascending)
        changed[code] = recoded(table, codes)
    for name in (*FLOATS, "dose"):
        changed[name] = bits(getattr(measurements, name)).view(np.float64)
    return replace(measurements, **changed)


def _key(entry: Any) -> tuple[str, str]:
    if isinstance(entry, str):
        return (entry, "")
    return (getattr(entry, "name", ""), entry.id)


def with_ordered_perturbations(measurements: Measurements) -> Measurements:
    """Return the same rows with the perturbations of each by gene, kind, allele and dose, as in `Genotype`.

    `measurements` has its names ascending.
    """
    m = measurements
    spelled, dose = np.unique(bits(m.dose), return_inverse=True)
    texts = [str(number) for number in spelled.view(np.float64).tolist()]
    # `Genotype` sorts doses by their text; the same order here gives the same ids.
    rank = np.argsort(np.argsort(texts))
    code = joint(
        [(m.gene, len(m.genes)), (m.kind, 256), (m.allele, len(m.alleles)), (rank[dose], len(texts))]
    )
    turned = (np.diff(code) < 0) & (np.diff(m.row) == 0)
    if not turned.any():
        return m
    order = np.lexsort((code, m.row))
    return replace(m, **{name: getattr(m, name)[order] for name in ("gene", "kind", "allele", "dose")})


def sha256(measurements: Measurements) -> str:
    """Return the hash of the content of rows, whatever their order."""
    return sha256_of_studies(by_study(canonical(measurements)))


def by_study(ordered: Measurements) -> Iterator[tuple[str, Measurements]]:
    """Yield the name and the rows of every study that has any; `ordered` is canonical, and so are they."""
    for code in np.unique(ordered.study).tolist():
        mine = ordered.study == code
        rows = ordered if mine.all() else ordered.take(mine)
        yield ordered.studies[code].name, with_ordered_names(rows)


def sha256_of_studies(parts: Iterable[tuple[str, Measurements]]) -> str:
    """Return the hash of canonical measurements given study by study, as (name, rows)."""
    digests = {name: _sha256_of_one(rows) for name, rows in parts}
    return content_hash(RECORD_VERSION, sorted(digests.items()))


def _sha256_of_one(rows: Measurements) -> str:
    names = [
        [entry if isinstance(entry, str) else entry.id for entry in getattr(rows, names)]
        for code, names in NAMES.items()
        if code != "study"  # a hash of what was measured does not change with a note on the study
    ]
    columns = ("gene", "kind", "allele", "dose", "offsets", "environment", "phenotype", "trait", "n",
               "replicate", "reference", *FLOATS)  # fmt: skip

    def parts() -> Iterator[Any]:
        yield names
        for name in columns:
            column = getattr(rows, name)
            # Hashes are of 64-bit codes; one column at a time is that wide.
            yield column.astype(np.int64) if name in NAMES else np.ascontiguousarray(column)

    return content_hash_of(parts())
