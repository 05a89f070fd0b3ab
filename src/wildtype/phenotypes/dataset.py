"""`Dataset`: a named table of measured mutants of one organism, with everything a reader must know about
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.files import content_hash
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import Organism

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.phenotypes.splits import Split


@dataclass(frozen=True)
class Phenotype:
    """What one column of numbers means.

    Attributes
    ----------
    name : str
        ``fitness``, ``epsilon``, ``tau``, …
    unit : str
        Unit of value and sd.
    source : str
        ``"study:phenotype"``; input features made from it are refused.
    min_order : int
        Fewest perturbed genes for which the phenotype is defined (2 for epsilon, 3 for tau).
    strong : float
        Absolute value from which an interaction counts as strong (AUROC of strong interactions).
    description : str
        One line.
    """

    name: str
    unit: str = "relative to wild type = 1"
    source: str = ""
    min_order: int = 1
    strong: float = 0.08
    description: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Measured mutants of one organism.

    Attributes
    ----------
    name : str
        Name by which it is loaded.
    organism : Organism
        The wild type; the table's gene positions refer to ``organism.genes``.
    table : MutantTable
        One row per unordered gene set, kinds, condition and phenotype: duplicates are already merged.
    phenotypes : tuple of Phenotype
        ``table.phenotype`` refers to this order.
    conditions : tuple of str
        ``table.condition`` refers to this order; 0 is the reference.
    targets : tuple of str
        Names of the phenotypes that models predict unless told otherwise.
    excluded : dict of str to int
        Rows of the source that are not in the table, by reason; with ``merged`` nothing is dropped in
        silence.
    policies : dict of str to str
        Named choices and what they mean (how alleles are merged, how duplicates are).
    single_fitness, single_fitness_sd : float32 [n] or None
        Fitness of the single mutants from a screen of single mutants (NaN: not known): an input of baselines
        and of ``predict --as fitness``. ``single_fitness_source`` names its phenotype source.
    noise : str
        What may be said about the noise of the labels, and its limits.
    notes : tuple of str
        What a reader must know (simulated, thresholded, may leak …).
    citation : str
        Where the measurements come from.
    """

    name: str
    organism: Organism
    table: MutantTable
    phenotypes: tuple[Phenotype, ...]
    conditions: tuple[str, ...] = ("reference",)
    targets: tuple[str, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    single_fitness: NDArray[np.float32] | None = None
    single_fitness_sd: NDArray[np.float32] | None = None
    single_fitness_source: str = ""
    noise: str = "no replicate measurements: no noise guide"
    notes: tuple[str, ...] = ()
    citation: str = ""

    def __post_init__(self) -> None:
        if not len(self.table):
            raise DatasetError(f"dataset {self.name!r} has no rows: check the source files and the filters")
        if self.table.gene.size and self.table.gene.max() >= len(self.organism.genes):
            raise DatasetError(f"dataset {self.name!r} was built on another gene index than its organism's")
        if not np.isfinite(self.table.value).all():
            at = int(np.flatnonzero(~np.isfinite(self.table.value))[0])
            raise DatasetError(
                f"dataset {self.name!r}: row {at} has a label that is not a number; drop or mend it"
            )
        names = [p.name for p in self.phenotypes]
        for target in self.targets:
            if target not in names:
                raise DatasetError(
                    f"dataset {self.name!r} has no phenotype {target!r}; it has {', '.join(names)}"
                )

    def __len__(self) -> int:
        return len(self.table)

    def phenotype_index(self, name: str) -> int:
        """Return the position of a phenotype; raises ``DatasetError`` naming those there are."""
        names = [p.name for p in self.phenotypes]
        if name not in names:
            raise DatasetError(f"dataset {self.name!r} has no phenotype {name!r}; it has {', '.join(names)}")
        return names.index(name)

    @cached_property
    def sha256(self) -> str:
        """Content hash over genes, table and phenotypes; the order of rows does not matter."""
        t = self.table
        position = np.arange(t.gene.size) - t.offsets[t.row]
        kinds = np.zeros(len(t), np.int64)  # one number per row; where it overflows, value and sd decide
        np.add.at(kinds, t.row, t.kind.astype(np.int64) << (3 * position % 63))
        t = t.take(np.lexsort((t.sd, t.value, kinds, t.condition, t.phenotype, t.set_id)))
        dose = np.zeros(0, np.float32) if t.dose is None else t.dose
        names = [p.name for p in self.phenotypes]
        return content_hash(
            self.organism.genes.sha256, names, list(self.conditions),
            t.gene, t.offsets, t.kind, t.condition, t.phenotype, t.value, t.sd, dose,
        )  # fmt: skip

    def select(self, phenotypes: Sequence[str]) -> Dataset:
        """Return the dataset with the rows of these phenotypes only, renumbered in the order given."""
        old = [self.phenotype_index(name) for name in phenotypes]
        new = np.full(len(self.phenotypes), -1, np.int64)
        new[old] = np.arange(len(old))
        rows = np.flatnonzero(new[self.table.phenotype] >= 0)
        if not rows.size:
            raise DatasetError(f"dataset {self.name!r} has no rows of {', '.join(phenotypes)}")
        table = self.table.take(rows)
        table = replace(table, phenotype=new[table.phenotype])
        return replace(
            self, table=table, phenotypes=tuple(self.phenotypes[i] for i in old), targets=tuple(phenotypes)
        )

    def measured_genes(self) -> NDArray[np.int64]:
        """Return the positions of the genes that any row perturbs, ascending."""
        return np.unique(self.table.gene)

    def restrict_genes(self, positions: NDArray[np.int64]) -> Dataset:
        """Return the dataset on the organism restricted to ``positions``; every perturbed gene must be among
        them.
        """
        mapping = np.full(len(self.organism.genes), -1, np.int64)
        mapping[positions] = np.arange(len(positions))

        def pick(values: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
            return None if values is None else values[positions]

        return replace(
            self,
            organism=self.organism.restrict(positions),
            table=self.table.remap(mapping),
            single_fitness=pick(self.single_fitness),
            single_fitness_sd=pick(self.single_fitness_sd),
        )

    def split(self, name: str = "random", seed: int = 0, **options: float) -> Split:
        """Return a named, seeded, leak-checked split of the rows; see ``wildtype.phenotypes.splits``."""
        from wildtype.phenotypes.splits import make_split

        return make_split(self, name, seed, **options)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per measurement: genes, kinds, phenotype, condition, value, sd."""
        import pandas as pd

        t, names = self.table, self.organism.genes.names
        kinds = [kind.name.lower() for kind in Kind]
        spans = list(zip(t.offsets[:-1], t.offsets[1:], strict=True))
        return pd.DataFrame(
            {
                "genes": [",".join(names[g] for g in t.gene[a:b]) for a, b in spans],
                "kinds": [",".join(kinds[k] for k in t.kind[a:b]) for a, b in spans],
                "order": t.order,
                "phenotype": [self.phenotypes[p].name for p in t.phenotype],
                "condition": [self.conditions[c] for c in t.condition],
                "value": t.value,
                "sd": t.sd,
            }
        )

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
            "rows_by_phenotype_and_order": counts,
            "perturbations_by_kind": {
                Kind(k).name.lower(): int(c) for k, c in zip(kinds, perturbed, strict=True)
            },
            "targets": list(self.targets),
            "excluded": dict(self.excluded),
            "policies": dict(self.policies),
            "noise": self.noise,
            "notes": list(self.notes),
            "citation": self.citation,
            "sha256": self.sha256,
        }
