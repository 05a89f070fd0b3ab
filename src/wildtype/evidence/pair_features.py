"""`PairFeatures`: columns for trees from genes and gene pairs of the organism, without any label.

Legend: n genes · m rows · p distinct pairs · f features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.products import entries, row_products
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.rows import Codes, pairs_of, segment
from wildtype.organism import GeneFeatures, Organism, Relation

COMPACT = 3
"""Feature blocks of up to so many columns enter column by column, wider ones as cosines."""
INDICATORS = 150
"""Up to so many measured genes, every gene gets an indicator column."""


def _pattern(adjacency: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(
        (np.ones_like(adjacency.data), adjacency.indices, adjacency.indptr), adjacency.shape
    )


def _overlap(
    adjacency: sparse.csr_array, left: NDArray[np.int64], right: NDArray[np.int64], weighted: bool
) -> list[NDArray[np.float32]]:
    """Return common neighbours, Jaccard index, and with weights the cosine of the rows; [p] each."""
    degree = np.diff(adjacency.indptr)
    # Cost is the degree of the right gene: the smaller one goes there. Sums are symmetric.
    swap = degree[left] < degree[right]
    i, j = np.where(swap, right, left), np.where(swap, left, right)
    ones = _pattern(adjacency)
    common = row_products(ones, i, ones, ones.data[:, None], j)[:, 0]
    union = degree[left] + degree[right] - common
    out = [common, np.asarray(common / np.maximum(union, 1), np.float32)]
    if weighted:
        norm = np.sqrt(np.asarray(adjacency.multiply(adjacency).sum(axis=1))).astype(np.float32)
        product = row_products(adjacency, i, adjacency, adjacency.data[:, None], j)[:, 0]
        out.append(np.asarray(product / np.maximum(norm[left] * norm[right], 1e-12), np.float32))
    return out


def _relation(
    relation: Relation, left: NDArray[np.int64], right: NDArray[np.int64]
) -> list[tuple[str, NDArray[np.float32]]]:
    """Return (name, feature [p]) of one relation, symmetric in left and right."""
    forth = entries(relation.adjacency, left, right)
    sides = [("", relation.adjacency)]
    out = [(f"{relation.name} weight", forth)]
    if relation.directed:
        back = entries(relation.adjacency, right, left)
        out = [
            (f"{relation.name} weight min", np.minimum(forth, back)),
            (f"{relation.name} weight max", np.maximum(forth, back)),
        ]
        sides = [(" targets", relation.adjacency), (" sources", relation.transpose)]
    for side, adjacency in sides:
        names = ("common", "jaccard", "cosine")
        found = _overlap(adjacency, left, right, relation.weighted)
        out += [(f"{relation.name}{side} {name}", value) for name, value in zip(names, found, strict=False)]
    return out


class PairFeatures:
    """Label-free features of rows of any order.

    Gene features (degrees, essentiality, single fitness, columns of small blocks) are reduced over the genes
    of a row (sum, min, max), pair features (edge weights, common neighbours, block similarities) over its
    k(k−1)/2 pairs (mean, max, min). Plus k, condition, kinds, the product of single fitness, and with few
    genes one indicator per gene.

    Parameters
    ----------
    organism : Organism
        Relations, feature blocks and essentiality are used.
    train : MutantTable
        Decides which columns there are (orders, kinds, conditions, measured genes); its labels are not read.
    single_fitness : float32 [n] or None
    """

    def __init__(
        self, organism: Organism, train: MutantTable, single_fitness: NDArray[np.float32] | None
    ) -> None:
        self.organism = organism
        n = len(organism.genes)
        genes: list[tuple[str, NDArray[np.float32]]] = []
        for relation in organism.graphs.values():
            sides = [("", relation.adjacency)]
            if relation.directed:
                sides = [(" out", relation.adjacency), (" in", relation.transpose)]
            genes += [(f"{relation.name}{s} degree", np.diff(a.indptr).astype(np.float32)) for s, a in sides]
        if organism.essential is not None:
            genes.append(("essential", organism.essential.astype(np.float32)))
        self._fitness = single_fitness
        if single_fitness is not None:
            genes.append(("fitness", np.asarray(single_fitness, np.float32)))
        self._blocks: list[tuple[str, NDArray[np.float32]]] = []
        for block in organism.features.values():
            if block.values.shape[1] <= COMPACT:
                genes += [
                    (f"{block.name}.{c}", v) for c, v in zip(block.columns, block.values.T, strict=True)
                ]
                continue
            matrix, _ = GeneFeatures([block]).matrix(n)
            norm = np.linalg.norm(matrix, axis=1, keepdims=True)
            matrix = matrix / np.maximum(norm, 1e-9)
            matrix[~np.isfinite(block.values).any(axis=1)] = np.nan
            self._blocks.append((block.name, matrix))
        self._gene_names = [name for name, _ in genes]
        self._genes = np.stack([v for _, v in genes], axis=1) if genes else np.zeros((n, 0), np.float32)
        self._several = int(train.order.max(initial=0)) > 2
        kinds, conditions = np.unique(train.kind), np.unique(train.condition)
        self._kinds = kinds if len(kinds) > 1 else kinds[:0]
        self._conditions = len(conditions) > 1
        measured = Codes(train.gene)
        self._indicators = measured.values if len(measured) <= INDICATORS else measured.values[:0]
        self.names: tuple[str, ...] = ()

    def __call__(self, table: MutantTable) -> NDArray[np.float32]:
        """Return features [m, f], NaN where unknown; ``names`` [f] says what they are."""
        m = len(table)
        columns: list[tuple[str, NDArray[np.float32]]] = [("order", table.order.astype(np.float32))]
        if self._conditions:
            columns.append(("condition", table.condition.astype(np.float32)))
        for kind in self._kinds:
            count = np.bincount(table.row[table.kind == kind], minlength=m)
            columns.append((f"kind {Kind(kind).name.lower()}", count.astype(np.float32)))
        how = ("sum", "min", "max")
        reduced = segment(self._genes[table.gene], table.row, m, how)
        names = [f"{name} {h}" for h in how for name in self._gene_names]
        columns += list(zip(names, reduced.T, strict=True))
        if self._fitness is not None:
            product = np.ones(m, np.float32)
            np.multiply.at(product, table.row, self._fitness[table.gene])
            columns.append(("fitness product", product))
        for gene in self._indicators:
            one = np.zeros(m, np.float32)
            one[table.row[table.gene == gene]] = 1
            columns.append((f"gene {self.organism.genes.names[gene]}", one))
        columns += self._pairs(table)
        self.names = tuple(name for name, _ in columns)
        return np.stack([value for _, value in columns], axis=1)

    def _pairs(self, table: MutantTable) -> list[tuple[str, NDArray[np.float32]]]:
        n = len(self.organism.genes)
        row, left, right = pairs_of(table)
        codes, inverse = np.unique(left * n + right, return_inverse=True)
        left, right = codes // n, codes % n
        found: list[tuple[str, NDArray[np.float32]]] = []
        for relation in self.organism.graphs.values():
            found += _relation(relation, left, right)
        for name, matrix in self._blocks:
            cosine = np.zeros(len(codes), np.float32)
            for start in range(0, len(codes), 1 << 15):  # [p, f] at once would not fit for all pairs
                part = slice(start, start + (1 << 15))
                cosine[part] = np.einsum("pf,pf->p", matrix[left[part]], matrix[right[part]])
            found.append((f"{name} cosine", cosine))
        for name, value in zip(self._gene_names, self._genes.T, strict=True):
            if "degree" not in name:
                found.append((f"{name} difference", np.abs(value[left] - value[right])))
        if not found:
            return []
        how = ("mean", "max", "min") if self._several else ("mean",)
        values = np.stack([value for _, value in found], axis=1)
        reduced = segment(values[inverse.reshape(-1)], row, len(table), how)
        return list(zip([f"{name} {h}" for h in how for name, _ in found], reduced.T, strict=True))
