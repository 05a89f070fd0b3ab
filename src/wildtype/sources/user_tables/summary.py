"""What a user's table holds, in plain values, to be looked at before anything is written.

Legend: m measurements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.mutants.ragged import ranks
from wildtype.mutants.selection import empty_gap, gap_warning
from wildtype.organism import Organism


def summarise(
    measurements: Measurements,
    organism: Organism,
    reading: ReadReport,
    selected: Collection[str] = (),
    read_as: Sequence[str] = (),
) -> dict[str, Any]:
    """Return counts of rows, genes, kinds, phenotypes, conditions and replicates, and what to look at twice.

    ``mutants`` are different combinations of genes, kinds, doses and alleles; a mutant is ``measured again``
    where a further row gives the same phenotype of it in the same condition. Phenotypes with an empty gap
    around 0 are named in a remark, unless they are among the ``selected``, whose cut-offs were declared.
    ``read_as`` says what was guessed (`Reading.remarks`).
    """
    m = measurements
    known = len(organism.genes)
    foreign = set() if organism.foreign is None else set(np.flatnonzero(organism.foreign).tolist())
    names = np.unique(m.gene)
    orders, rows = np.unique(m.order, return_counts=True)
    kinds, perturbed = np.unique(m.kind, return_counts=True)
    mutant = m.genotypes[1]
    question = ranks(mutant, m.phenotype, m.environment)
    return {
        "name": m.studies[0].name,
        "organism": organism.name,
        "file": reading.file,
        "rows": len(m),
        "left_out": dict(reading.dropped),
        "read_as": list(read_as),
        "mutants": _number(mutant),
        "rows_by_order": {str(order): int(count) for order, count in zip(orders, rows, strict=True)},
        "genes": len(names),
        "foreign_genes": [m.genes[g] for g in names if g >= known or g in foreign],
        "perturbations_by_kind": {
            PerturbationKind(kind).name.lower().replace("_", " "): int(count)
            for kind, count in zip(kinds, perturbed, strict=True)
        },
        "phenotypes": [
            {
                "name": definition.name,
                "unit": definition.unit,
                "rows": int(rows.sum()),
                "lowest": float(m.value[rows].min()),
                "highest": float(m.value[rows].max()),
                "with_sd": int(np.isfinite(m.sd[rows]).sum()),
            }
            for p, definition in enumerate(m.phenotypes)
            if (rows := m.phenotype == p).any()
        ],
        "rows_by_condition": _counted([str(environment) for environment in m.environments], m.environment),
        "rows_by_replicate": _counted([name or "not stated" for name in m.replicates], m.replicate),
        "measured_again": len(m) - _number(question),
        "remarks": _remarks(m, organism, reading, question) + _gaps(m, selected),
    }


def _remarks(
    m: Measurements, organism: Organism, reading: ReadReport, question: NDArray[np.int64]
) -> list[str]:
    same = ranks(question, m.value.view(np.int64), m.replicate)
    native = m.gene < len(organism.genes)
    lethal = native & (m.kind == PerturbationKind.DELETION)
    if organism.essential is None:
        lethal[:] = False
    else:
        lethal[native] &= organism.essential[m.gene[native]]
    counts = {
        "rows that name a gene by an older name or alias": reading.renamed,
        "rows that repeat another row, value and replicate alike, and count once": len(m) - _number(same),
        f"added genes that organism {organism.name!r} does not have, and of which only the name is known "
        f"(--added-genes describes them)": len(np.unique(m.gene[~native])),
        "rows that delete a gene that is listed as essential (is its kind really absent?)": len(
            np.unique(m.row[lethal])
        ),
    }
    return [*m.studies[0].notes, *(f"{what}: {count:,}" for what, count in counts.items() if count)]


def _gaps(m: Measurements, selected: Collection[str]) -> list[str]:
    """Return a warning for every phenotype whose values look like those of a thresholded list."""
    warnings = []
    for p, definition in enumerate(m.phenotypes):
        gap = empty_gap(m.value[m.phenotype == p], one_sided=definition.min_order > 1)
        if gap is not None and definition.name not in selected:
            declare = "; declare the cut-offs with --listed-below and --listed-above"
            warnings.append(gap_warning(definition.name, gap) + declare)
    return warnings


def _number(groups: NDArray[np.int64]) -> int:
    return int(groups.max()) + 1


def _counted(names: Sequence[str], codes: NDArray[np.int64]) -> dict[str, int]:
    counts = np.bincount(codes, minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}
