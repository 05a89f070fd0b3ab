"""Identity of mutants: which rows are one mutant, one gene set, or one gene set in one condition.

Numbers identify mutants within one table; keys (64-bit hashes) are the same in every table of one gene
index, so that rows of several tables can be compared.

Legend: m rows · b mutants · k perturbed genes of one row · q items, Σk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.ragged import joint, ragged_ranks, ranks
from wildtype.mutants.table import Kind, MutantTable
from wildtype.seeds import generator

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]


def perturbation_id(gene: Ints, kind: NDArray[Any], dose: NDArray[np.floating[Any]] | None) -> Ints:
    """Return a number [q] for each perturbation: equal for equal gene, kind and dose (NaN: no dose)."""
    columns = [gene, kind.astype(np.int64)]
    return ranks(*columns) if dose is None else ranks(*columns, dose)


def mutant_id(table: MutantTable) -> Ints:
    """Return [M] a number for each row's mutant: equal for equal genes, kinds and doses."""
    return ragged_ranks([perturbation_id(table.gene, table.kind, table.dose)], table.offsets)


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows of a table grouped by mutant and condition.

    Attributes
    ----------
    first : int64 [b]
        First row of every mutant, ascending.
    mutant : int64 [m]
        Mutant of each row.
    """

    first: Ints
    mutant: Ints


def grouping(table: MutantTable) -> Grouping | None:
    """Group rows of equal genes, kinds, doses and condition; None where no two rows are equal.

    A table of one phenotype is not grouped: every row is a separate mutant. Costs O(m log m).
    """
    if not len(table) or (table.phenotype == table.phenotype[0]).all():
        return None
    mutants = mutant_id(table)
    codes = joint([(mutants, int(mutants.max()) + 1), (table.condition, int(table.condition.max()) + 1)])
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) == len(table):
        return None
    order = np.argsort(first)  # mutants in the order of their first rows, not of their numbers
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Grouping(first[order].astype(np.int64), place[code.reshape(-1)].astype(np.int64))


def gene_words(n: int) -> NDArray[np.uint64]:
    """Return one random 64-bit number per gene, the same for equal n: see `keys_of`."""
    return generator(0, "gene keys").integers(0, 2**64, n, dtype=np.uint64)


def keys_of(
    gene: NDArray[np.int64], offsets: NDArray[np.int64], words: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return a 64-bit key of every gene set of ragged rows [m].

    A key is the sum modulo 2⁶⁴ of one random number per gene (Zobrist hashing), so that removing a gene costs
    one subtraction for sets of any size; two of 10⁶ sets collide with probability below 10⁻⁷.
    """
    with np.errstate(over="ignore"):
        # Unsigned sums wrap modulo 2⁶⁴, so differences of running sums are the exact keys of the rows.
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words[gene], dtype=np.uint64)])
        return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def mixed_words(words: Keys) -> Keys:
    """Return well mixed 64-bit words, one per word: SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        x = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def set_keys(table: MutantTable, n: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return a key of every row's gene set and condition [m], and of every row less one gene [q]."""
    genes = gene_words(n)
    with np.errstate(over="ignore"):
        whole = keys_of(table.gene, table.offsets, genes) + _condition_words(table)[table.condition]
        return whole, whole[table.row] - genes[table.gene]


def mutant_keys(table: MutantTable, n: int) -> Keys:
    """Return a 64-bit key of every row's genes, kinds and condition [m] (Zobrist hashing, as `set_keys`)."""
    words = generator(0, "mutant keys").integers(0, 2**64, n * len(Kind), dtype=np.uint64)
    perturbed = table.gene * len(Kind) + table.kind
    with np.errstate(over="ignore"):
        return keys_of(perturbed, table.offsets, words) + _condition_words(table)[table.condition]


def mean_of_mutants(known: MutantTable, table: MutantTable) -> tuple[Floats, Floats]:
    """Return the mean value [m] of the known rows that measured each mutant of a table, and its sd.

    A mutant is the same where genes, kinds, doses and condition are equal: several alleles of a gene that are
    of one kind are averaged. Values are NaN where there is no such row, and sds also where one is not known.
    """
    m = len(table)
    rows = [
        MutantTable.build(t.gene, t.offsets, kind=t.kind, dose=t.dose, condition=t.condition)
        for t in (table, known)
    ]
    both = MutantTable.concatenate(rows)
    if not len(known) or not m:
        return np.full(m, np.nan), np.full(m, np.nan)
    mutants = mutant_id(both)
    codes = joint([(mutants, int(mutants.max()) + 1), (both.condition, int(both.condition.max()) + 1)])
    _, group = np.unique(codes, return_inverse=True)
    size = int(group.max()) + 1
    count = np.bincount(group[m:], minlength=size)
    total = np.bincount(group[m:], weights=known.value, minlength=size)
    variance = np.bincount(group[m:], weights=known.sd.astype(np.float64) ** 2, minlength=size)
    with np.errstate(invalid="ignore"):  # 0 / 0: a mutant that no known row measured
        return (total / count)[group[:m]], (np.sqrt(variance) / count)[group[:m]]


def _condition_words(table: MutantTable) -> Keys:
    conditions = int(table.condition.max(initial=0)) + 1
    return generator(0, "condition keys").integers(0, 2**64, conditions, dtype=np.uint64)


class SetIndex:
    """Finds rows by unordered gene set, whatever the kinds of perturbation, by binary search.

    Parameters
    ----------
    table : MutantTable
        Rows to find; where several rows have one gene set, the first is found.

    Notes
    -----
    Building costs O(m log m), a query O(log m), for m rows; 16 bytes for each pair or triple of genes.
    """

    def __init__(self, table: MutantTable) -> None:
        self._genes = int(table.gene.max(initial=-1)) + 1
        self._keys: dict[int, NDArray[Any]] = {}
        self._rows: dict[int, NDArray[np.int64]] = {}
        for k, rows, at in table.by_order():
            self._keys[k], first = np.unique(self._key(table.gene, at), return_index=True)
            self._rows[k] = rows[first]

    def find(self, table: MutantTable) -> NDArray[np.int64]:
        """Return, for every row of ``table`` [M], the first indexed row with the same gene set, or -1."""
        found = np.full(len(table), -1, np.int64)
        for k, rows, at in table.by_order():
            known = self._keys.get(k)
            if known is None:
                continue
            keys = self._key(table.gene, at)
            near = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            # The number of a tuple with a gene that no indexed row has may be that of another one.
            hit = (known[near] == keys) & (table.gene[at] < self._genes).all(axis=1)
            found[rows[hit]] = self._rows[k][near[hit]]
        return found

    def _key(self, gene: Ints, at: Ints) -> NDArray[Any]:
        """Return one key per tuple of the genes at positions [r, k]: a number, or bytes where none fits."""
        if not at.shape[1]:
            return np.zeros(len(at), np.int64)
        if self._genes ** at.shape[1] >= 2**63:
            return _bytes_of(gene[at])
        return joint([(gene[column], self._genes) for column in at.T])


class MutantIndex:
    """Finds out which mutants a table has, by genes, kinds and condition, whatever the doses.

    Parameters
    ----------
    table : MutantTable
        Mutants to find.
    n : int
        Genes of the gene index.
    """

    def __init__(self, table: MutantTable, n: int) -> None:
        self._n, self._keys = n, np.unique(mutant_keys(table, n))

    def holds(self, table: MutantTable) -> NDArray[np.bool_]:
        """Return which rows of ``table`` [M] are one of the mutants; O(log m) each."""
        if not len(self._keys):
            return np.zeros(len(table), bool)
        keys = mutant_keys(table, self._n)
        near = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.asarray(self._keys[near] == keys)


def _bytes_of(genes: Ints) -> NDArray[np.void]:
    """Return one fixed-width key per gene tuple [r, k], k > 0; big-endian bytes sort as the tuples do."""
    width = 8 * genes.shape[1]
    return np.ascontiguousarray(genes.astype(">i8")).view(f"V{width}").reshape(-1)
