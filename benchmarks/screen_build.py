"""What the whole screen of 2016 costs: a generated archive of its layout, from files to the rows of a run."""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.measuring import chosen
from wildtype.datasets.crosses import expand, split_crosses
from wildtype.datasets.store import Store
from wildtype.organism import Coordinates, GeneIndex, Organism
from wildtype.profiling.machine import PeakMemory, machine
from wildtype.seeds import generator
from wildtype.sources.yeast.datasets import FULL_2016, RECIPES
from wildtype.sources.yeast.readers import ingest

HEADER = (
    "Query Strain ID\tQuery allele name\tArray Strain ID\tArray allele name\tArraytype/Temp\t"
    "Genetic interaction score (ε)\tP-value\tQuery single mutant fitness (SMF)\tArray SMF\t"
    "Double mutant fitness\tDouble mutant fitness standard deviation"
)
"""Columns of the four tables of crosses."""
STRAIN_HEADER = (
    "Strain ID\tSystematic gene name\tAllele/Gene name\tSingle mutant fitness (26°)\t"
    "Single mutant fitness (26°) stddev\tSingle mutant fitness (30°)\tSingle mutant fitness (30°) stddev"
)
TABLES = {"SGA_NxN.txt": 0.61, "SGA_ExN_NxE.txt": 0.28, "SGA_ExE.txt": 0.04, "SGA_DAmP.txt": 0.07}
"""The share of rows of each table."""
MOST_GENES = 6000
_Result = TypeVar("_Result")


def bench_screen_build(
    *, rows: int = 2_000_000, listed: int = 400_000, seed: int = 0, folder: Path | None = None
) -> dict[str, Any]:
    """The whole screen of 2016 from a generated archive: files to store, store to dataset, rows of a run.

    Parameters
    ----------
    rows : int
        Crosses; the archive has 20.7 million.
    listed : int
        Training crosses at most that are rows of a run, as the dataset's preset has it.
    seed : int
        Of the scores.
    folder : Path, optional
        Parent of the temporary folder.
    """
    problem = chosen(locals(), "folder")
    seconds: dict[str, float] = {}
    peak: dict[str, float] = {}

    def timed(name: str, act: Callable[[], _Result]) -> _Result:
        with PeakMemory() as memory:
            start = time.perf_counter()
            result = act()
            seconds[name] = time.perf_counter() - start
        peak[name] = memory.peak
        return result

    organism = invented_organism(MOST_GENES)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        archive = Path(place) / "archive"
        archive.mkdir()
        timed("write files", lambda: write_archive(archive, organism.genes, rows, seed))
        with Store.create(Path(place) / "store.duckdb") as store:
            timed("files to store", lambda: list(ingest(store, archive, organism.genes, ["costanzo2016"])))
            recipe = RECIPES[FULL_2016]
            dataset = timed("store to dataset", lambda: recipe.build(store, organism))
    drawn = timed("split", lambda: split_crosses(dataset, "random", seed))
    run, _, counts = timed(
        "rows of a run", lambda: expand(dataset, dataset.targets, drawn, most_listed=listed)
    )
    return {
        "machine": machine(),
        "problem": problem | {"crosses": len(dataset), "run_rows": len(run), "unlisted": _unlisted(counts)},
        "seconds": seconds,
        "peak_mib": peak,
    }


def _unlisted(counts: dict[str, dict[str, int]]) -> int:
    return sum(side["crosses"] - side["listed"] for side in counts.values())


def invented_organism(n: int) -> Organism:
    """Return an organism of so many genes under names of ORFs, 1,000 kb apart: none are linked."""
    names = [f"Y{'ABCDEFGHIJKLMNOP'[i // 400]}{'LR'[i // 200 % 2]}{i % 200 + 1:03d}W" for i in range(n)]
    start = np.arange(n, dtype=np.float64) * 1000.0
    places = Coordinates(np.ones(n, np.int64), start, start + 1, np.ones(n, np.int8), "invented")
    return Organism("yeast", GeneIndex(tuple(names), {}, {}, "yeast"), coordinates=places)


def write_archive(folder: Path, genes: GeneIndex, rows: int, seed: int = 0) -> None:
    """Write four tables of so many crosses in all, in the layout of the archive, and its table of strains.

    Every query is crossed with every array; all numbers are drawn.
    """
    draw, n = generator(seed, "bench screen"), len(genes)
    arrays = min(n, max(20, int((2 * rows) ** 0.5)))
    queries = -(-rows // arrays)
    names = np.array(genes.names)
    written = 0
    for table, share in TABLES.items():
        count = rows - written if table == "SGA_DAmP.txt" else round(rows * share)
        with open(folder / table, "w", encoding="utf-8") as handle:
            handle.write(HEADER + "\n")
            for start in range(written, written + count, 200_000):
                at = np.arange(start, min(start + 200_000, written + count))
                query, array = names[at // arrays % n], names[n - 1 - at % arrays]
                score, p = draw.normal(0, 0.06, len(at)), draw.random(len(at))
                # Queries are spread over the tables, so that all four are of one grid.
                handle.writelines(
                    f"{q}_sn{i % 9}\t{q}\t{a}_dma1\t{a}\tDMA30\t{e:.4f}\t{x:.3E}\t0.9\t0.9\t0.8\t0.05\n"
                    for q, a, e, x, i in zip(query, array, score, p, (at // arrays).tolist(), strict=True)
                )
        written += count
    strains = {name: f"{name}_dma1" for name in genes.names[n - arrays :]}
    strains |= {name: f"{name}_sn{i % 9}" for i, name in enumerate(genes.names[: min(queries, n)])}
    lines = [f"{strain}\t{name}\t{name}\t0.9\t0.05\t0.9\t0.05" for name, strain in strains.items()]
    text = "\n".join([STRAIN_HEADER, *lines]) + "\n"
    with gzip.open(folder / "costanzo2016_single_mutant_fitness.tsv.gz", "wt", encoding="utf-8") as packed:
        packed.write(text)
