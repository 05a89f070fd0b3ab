"""What the store costs: a million synthetic measurements in, and out again as columns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.measuring import chosen
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import (
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.datasets.store import Query, Store
from wildtype.datasets.store.canonical import canonical
from wildtype.profiling.machine import MIB, PeakMemory, machine
from wildtype.seeds import generator

_Result = TypeVar("_Result")


def bench_store(
    *, rows: int = 1_000_000, genes: int = 6607, seed: int = 0, folder: Path | None = None
) -> dict[str, Any]:
    """Measurements into the store of all experiments, and queried out of it.

    Parameters
    ----------
    rows, genes : int
        Measurements (singles, pairs and triples by thirds, a tenth of the perturbations alleles, in three
        environments), and genes to draw from.
    seed : int
        Of the measurements.
    folder : Path, optional
        Parent of the temporary folder of the store.
    """
    problem = chosen(locals(), "folder")
    given = synthetic_measurements(rows, genes, seed)
    seconds: dict[str, float] = {}
    peak: dict[str, float] = {}

    def timed(name: str, act: Callable[[], _Result]) -> _Result:
        with PeakMemory() as memory:
            start = time.perf_counter()
            result = act()
            seconds[name] = time.perf_counter() - start
        peak[name] = memory.peak - memory.before
        return result

    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "store.duckdb"

        def ingest() -> None:
            with Store.create(path) as store:
                store.ingest(given)

        timed("ingest", ingest)
        size = path.stat().st_size / MIB
        with Store.open(path, read_only=True) as store:
            out = timed("query, all rows", lambda: store.select(Query()))
            some = timed("query, triples", lambda: store.select(Query().order(3).environment(medium="YPD")))
            timed("hash", store.content_hash)
    expected = canonical(given)
    equal = all(
        np.array_equal(getattr(out, name), column, equal_nan=column.dtype.kind == "f")
        for name, column in vars(expected).items()
        if isinstance(column, np.ndarray)
    )
    return {
        "machine": machine(),
        "problem": problem | {"perturbations": len(given.gene)},
        "seconds": seconds,
        "rows_per_second": {
            "ingest": rows / seconds["ingest"],
            "query, all rows": rows / seconds["query, all rows"],
            "query, triples": len(some) / seconds["query, triples"],
        },
        "mib": {"file": size, **{f"memory, {name}": value for name, value in peak.items()}},
        "equal": equal,
    }


def synthetic_measurements(rows: int, genes: int, seed: int = 0) -> Measurements:
    """Return measurements of random singles, pairs and triples: interactions with p and sd, two replicates.

    Every gene has four alleles, one of them temperature-sensitive.
    """
    draw = generator(seed, "bench store")
    order = np.arange(rows) % 3 + 1
    offsets = np.concatenate([[0], np.cumsum(order)])
    # Ascending draws with gaps of at least one cannot repeat a gene within a row.
    widest = max(2, genes // 9)
    picked = draw.integers(0, genes - 3 * widest, rows)[:, None] + np.cumsum(
        draw.integers(1, widest, (rows, 3)), axis=1
    )
    gene = picked[np.arange(3)[None, :] < order[:, None]]
    allele = np.where(draw.random(len(gene)) < 0.1, draw.integers(1, 4, len(gene)), 0)
    kinds = np.array([PerturbationKind.DELETION, PerturbationKind.TEMPERATURE_SENSITIVE], np.uint8)
    return Measurements.build(
        Study(name="synthetic", publication=Publication(citation="drawn, not measured"), organism="none"),
        genes=[f"G{i:05d}" for i in range(genes)],
        gene=gene,
        offsets=offsets,
        kind=kinds[(allele == 1).astype(np.int64)],
        allele=np.array(["", "ts-1", "a-2", "a-3"], dtype=object)[allele],
        environments=[
            Environment(medium="YPD", temperature=26),
            Environment(medium="YPD", temperature=30),
            Environment(medium="SC", compounds=(Compound(name="NaCl", dose=0.1, unit="M"),)),
        ],
        environment=draw.integers(0, 3, rows),
        phenotypes=[
            PhenotypeDefinition(name="fitness"),
            PhenotypeDefinition(name="epsilon", min_order=2),
            PhenotypeDefinition(name="tau", min_order=3),
        ],
        phenotype=order - 1,
        value=draw.normal(0, 0.1, rows),
        sd=draw.gamma(2, 0.02, rows),
        p=draw.random(rows),
        n=draw.integers(1, 5, rows),
        replicate=np.array(["MATa", "MATalpha"], dtype=object)[draw.integers(0, 2, rows)],
        reference="BY4741",
    )
