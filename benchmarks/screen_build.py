"""What the whole screen of 2016 costs: a generated archive of its layout, from files to a trained model."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil

from benchmarks.measuring import chosen
from wildtype.datasets import Dataset
from wildtype.datasets.crosses import expand, split_crosses
from wildtype.datasets.storage import save_dataset
from wildtype.datasets.store import Store
from wildtype.errors import ConfigError
from wildtype.organism import (
    Coordinates,
    FeatureBlock,
    GeneFeatures,
    GeneGraphs,
    GeneIndex,
    Organism,
    Relation,
)
from wildtype.organism.storage import save_organism
from wildtype.profiling.machine import MIB, PeakMemory, machine
from wildtype.seeds import generator
from wildtype.sources.catalogue import dataset_folder, organism_folder
from wildtype.sources.yeast.datasets import RECIPES
from wildtype.sources.yeast.pair_datasets import FULL_2016
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
RELATIONS = {"regulation": 200_000, "physical": 70_000, "coexpression": 55_000, "experiments": 50_000,
             "pathways": 30_000, "neighbourhood": 8_000, "cooccurrence": 1_200, "fusion": 500}  # fmt: skip
"""Edges of each drawn gene graph, some as many as yeast's have."""
FEATURES = {"spectral.all": 112, "process": 64, "traits": 32, "codons": 24, "protein": 21, "degrees": 11,
            "properties": 9, "rules": 7, "network": 6, "bias": 3, "abundance": 1, "essential": 1}  # fmt: skip
"""Columns of each drawn block of features, as many as yeast's have."""
EVERY = 0.02
"""Seconds between two looks at the memory of a training."""
_Result = TypeVar("_Result")


def bench_screen_build(
    *,
    rows: int = 2_000_000,
    listed: int = 400_000,
    train: str = "",
    seed: int = 0,
    folder: Path | None = None,
) -> dict[str, Any]:
    """The whole screen of 2016 from a generated archive: files to store, store to dataset, rows of a run.

    Parameters
    ----------
    rows : int
        Crosses; the archive has 20.7 million.
    listed : int
        Training crosses at most that are rows of a run, as the dataset's preset has it.
    train : str
        Overrides of a training of ``pair_screen`` by ``wildtype train``, in a process of its own, as in
        ``model.iterations=20 baselines=[]``. Empty: no training.
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

    with tempfile.TemporaryDirectory(dir=folder) as place, own_cache(Path(place) / "cache"):
        dataset = build_generated(Path(place), rows, seed, timed)
        drawn = timed("split", lambda: split_crosses(dataset, "random", seed))
        run, _, counts = timed(
            "rows of a run", lambda: expand(dataset, dataset.targets, drawn, most_listed=listed)
        )
        problem |= {"crosses": len(dataset), "run_rows": len(run), "unlisted": _unlisted(counts)}
        if train:
            del dataset, run, drawn
            overrides = [f"data.listed={listed}", f"seed={seed}", *train.split()]
            seconds["train"], peak["train"] = train_generated(Path(place) / "run", overrides)
    return {"machine": machine(), "problem": problem, "seconds": seconds, "peak_mib": peak}


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """Keep what is generated out of the user's cache."""
    before = os.environ.get("WILDTYPE_CACHE")
    os.environ["WILDTYPE_CACHE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["WILDTYPE_CACHE"]
        else:
            os.environ["WILDTYPE_CACHE"] = before


def build_generated(
    place: Path,
    rows: int,
    seed: int,
    timed: Callable[[str, Callable[[], Any]], Any] = lambda name, act: act(),
) -> Dataset:
    """Return the dataset of a generated archive of so many crosses; cached, with its organism, as users' are.

    ``timed`` is called with each step and its name.
    """
    organism = invented_organism(MOST_GENES)
    archive = place / "archive"
    archive.mkdir()
    timed("write files", lambda: write_archive(archive, organism.genes, rows, seed))
    with Store.create(place / "store.duckdb") as store:
        timed("files to store", lambda: list(ingest(store, archive, organism.genes, ["costanzo2016"])))
        dataset: Dataset = timed("store to dataset", lambda: RECIPES[FULL_2016].build(store, organism))
    save_organism(organism, organism_folder(organism.name))
    timed("save dataset", lambda: save_dataset(dataset, dataset_folder(FULL_2016)))
    return dataset


def train_generated(folder: Path, overrides: Sequence[str]) -> tuple[float, float]:
    """Train on the dataset in the cache with ``wildtype train``; return its seconds and its peak memory, MiB.

    Raises
    ------
    ConfigError
        If training fails; its last line is quoted.
    """
    fixed = ["model=pair_screen", f"data={FULL_2016}", f"run.folder={folder}", "run.progress=false"]
    code = "from wildtype.cli.main import main; main()"
    start, peak = time.perf_counter(), 0.0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = psutil.Popen(
            [sys.executable, "-c", code, "train", *fixed, *overrides],
            # The path of this process, so that its sources are trained, installed or not.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        # The kernel's high-water mark is reset within the run, once per model: its memory is read often.
        while process.poll() is None:
            with suppress(psutil.Error):
                peak = max(peak, process.memory_info().rss / MIB)
            time.sleep(EVERY)
        said.seek(0)
        lines = said.read().splitlines()
    if process.returncode:
        raise ConfigError(f"training on generated crosses failed: {lines[-1] if lines else 'without a word'}")
    return time.perf_counter() - start, peak


def _unlisted(counts: dict[str, dict[str, int]]) -> int:
    return sum(side["crosses"] - side["listed"] for side in counts.values())


def invented_organism(n: int) -> Organism:
    """Return an organism of so many genes under names of ORFs, with drawn graphs and features.

    Genes lie 1,000 kb apart: none are linked.
    """
    names = [f"Y{'ABCDEFGHIJKLMNOP'[i // 400]}{'LR'[i // 200 % 2]}{i % 200 + 1:03d}W" for i in range(n)]
    start = np.arange(n, dtype=np.float64) * 1000.0
    places = Coordinates(np.ones(n, np.int64), start, start + 1, np.ones(n, np.int8), "invented")
    draw = generator(0, "bench organism")
    # Fewer edges where there are fewer genes, so that a small organism's graphs are not complete.
    relations = []
    for name, edges in RELATIONS.items():
        left, right = draw.integers(n, size=(2, -(-edges * n // MOST_GENES)))
        relations.append(Relation.from_edges(name, left, right, n, directed=False, source="drawn"))
    blocks = [
        FeatureBlock(
            name, draw.normal(size=(n, width)).astype(np.float32), tuple(f"{name}.{i}" for i in range(width))
        )
        for name, width in FEATURES.items()
    ]
    return Organism(
        "yeast",
        GeneIndex(tuple(names), {}, {}, "yeast"),
        graphs=GeneGraphs(relations),
        features=GeneFeatures(blocks),
        coordinates=places,
    )


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
