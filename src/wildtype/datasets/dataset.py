"""`Dataset`: measured mutants of one organism, with their splits, folds, tables for people and a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.folds import make_folds
from wildtype.datasets.splits import Split, make_split
from wildtype.errors import DatasetError
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.ragged import BLOCK
from wildtype.mutants.selection import selection_sentences
from wildtype.tables import facts_html

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


NAMED = 4
"""Most phenotypes that the text of a dataset names."""


@dataclass(frozen=True, eq=False)
class Dataset(DatasetRecord):
    """Measured mutants of one organism; its attributes are those of ``DatasetRecord``."""

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {len(self):,} rows: {', '.join(self._by_phenotype())}; organism "
            f"{self.organism.name!r}, {len(self.measured_genes()):,} of {len(self.organism.genes):,} genes "
            f"measured)"
        )

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("organism", f"{self.organism.name}, {len(self.organism.genes):,} genes"),
            ("rows", "; ".join(self._by_phenotype())),
            ("genes measured", f"{len(self.measured_genes()):,}"),
            ("targets", ", ".join(self.targets[:NAMED]) + (", …" if self.targets[NAMED:] else "")),
            ("citation", self.citation or "none"),
        ]
        return facts_html(self.name, facts)

    def _by_phenotype(self) -> list[str]:
        """Return rows and name of the first phenotypes, and how many others there are."""
        counts = np.bincount(self.table.phenotype, minlength=len(self.phenotypes))
        named = [f"{c:,} {p.name}" for c, p in zip(counts.tolist(), self.phenotypes, strict=True)]
        return named if len(named) <= NAMED else [*named[:NAMED], f"{len(named) - NAMED} more phenotypes"]

    def split(self, name: str = "random", seed: int = 0, **options: Any) -> Split:
        """Return a named, seeded, leak-checked split of the rows; see ``wildtype.datasets.splits``.

        Raises ``SplitError`` for a name that is not known, fractions that leave a part empty, or options that
        the split does not take.
        """
        return make_split(self, name, seed, **options)

    def folds(self, name: str = "random", folds: int = 5, seed: int = 0, **options: Any) -> tuple[Split, ...]:
        """Return the splits of a cross-validation; see ``wildtype.datasets.folds``.

        Raises ``SplitError`` as `split` does, and for fewer than two folds.
        """
        return make_folds(self, name, folds, seed, **options)

    def to_arrow(self) -> pa.Table:
        """Return one row per measurement: genes, kinds, order, phenotype, condition, value, sd, for people.

        Genes and kinds (and doses, where there are any) are texts separated by commas; an unknown sd is null.
        A column p follows where any p-value is known; the others are null.
        """
        import pyarrow as pa

        return pa.concat_tables(list(self.arrow_blocks()))

    def arrow_blocks(self) -> Iterator[pa.Table]:
        """Yield the rows of `to_arrow` some at a time: as texts they take twice the memory of the table."""
        for start in range(0, max(len(self), 1), BLOCK):
            yield self._arrow(self.table.take(np.arange(start, min(start + BLOCK, len(self)))))

    def _arrow(self, t: MutantTable) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        def joined(texts: pa.Array) -> pa.Array:
            return pc.binary_join(pa.ListArray.from_arrays(pa.array(t.offsets, pa.int32()), texts), ",")

        def named(names: Sequence[str], codes: NDArray[np.integer[Any]]) -> pa.Array:
            return pa.array(names, pa.string()).take(pa.array(codes))

        columns = {
            "genes": joined(named(self.organism.genes.names, t.gene)),
            "kinds": joined(named([kind.name.lower() for kind in Kind], t.kind)),
            "order": pa.array(t.order),
            "phenotype": named([p.name for p in self.phenotypes], t.phenotype),
            "condition": named(self.conditions, t.condition),
            "value": pa.array(t.value),
            "sd": pa.array(t.sd, from_pandas=True),
        }
        if t.p is not None:
            columns["p"] = pa.array(t.p, from_pandas=True)
        if t.dose is not None:
            doses = pc.cast(pa.array(t.dose, from_pandas=True), pa.string())
            columns["doses"] = joined(pc.fill_null(doses, ""))
        return pa.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per measurement, with the columns of ``to_arrow``."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def cross_counts(self) -> dict[str, int]:
        """Return how many crosses of the grid are listed, unlisted (measured and not listed) and unknown.

        A cross is of two strains, so that a deletion and a hypomorph of one gene have one each. Raises
        ``DatasetError`` where the dataset has no grid.
        """
        if self.grid is None:
            raise DatasetError(f"dataset {self.name!r} has no grid of crosses to count")
        known, unknown = self.grid.counts()
        listed = len(np.unique(self.grid.cross_codes(self.table)))
        return {"listed": listed, "unlisted": known - listed, "unknown": unknown}

    def card(self) -> dict[str, Any]:
        """Return what the dataset is, in plain values: counts by order and phenotype, exclusions, policies,
        notes.
        """
        t = self.table
        counts: dict[str, dict[str, int]] = {}
        for p, phenotype in enumerate(self.phenotypes):
            orders, rows = np.unique(t.order[t.phenotype == p], return_counts=True)
            counts[phenotype.name] = {str(o): int(r) for o, r in zip(orders, rows, strict=True)}
        kinds, perturbed = np.unique(t.kind, return_counts=True)
        return {
            "name": self.name,
            "organism": self.organism.name,
            "organism_description": self.organism.description,
            "genes": len(self.organism.genes),
            "genes_measured": len(self.measured_genes()),
            "rows": len(t),
            **({"conditions": list(self.conditions)} if len(self.conditions) > 1 else {}),
            "rows_by_phenotype_and_order": counts,
            **({} if self.grid is None else {"crosses": self.cross_counts()}),
            "perturbations_by_kind": {
                Kind(k).name.lower(): int(c) for k, c in zip(kinds, perturbed, strict=True)
            },
            "targets": list(self.targets),
            "selection": selection_sentences(p.to_json() for p in self.phenotypes),
            "excluded": dict(self.excluded),
            "policies": dict(self.policies),
            "stages": [report.to_json() | {"counts": report.counts} for report in self.stages],
            **({"provenance": dict(self.provenance)} if self.provenance else {}),
            "noise": self.noise,
            "notes": list(self.notes),
            "citation": self.citation,
            "sha256": self.sha256,
        }
