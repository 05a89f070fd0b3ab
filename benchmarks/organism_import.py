"""What `wildtype organism import` costs: links of STRING with their aliases, in a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.measuring import chosen
from wildtype.errors import SourceError
from wildtype.profiling.machine import MIB, machine
from wildtype.seeds import generator

CHANNELS = ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database", "textmining")
PRESENT = (0.05, 0.005, 0.02, 0.6, 0.35, 0.05, 0.9)
"""Share of rows with a score above 0, about as in the file of human."""
TAXON = "9606"
ROWS = 500_000
"""Lines that are made at a time."""


def bench_organism_import(
    *,
    genes: int = 20_000,
    lines: int = 12_000_000,
    aliases: int = 3_000_000,
    cutoff: int = 0,
    seed: int = 0,
    folder: Path | None = None,
) -> dict[str, Any]:
    """`wildtype organism import` of a table of genes and STRING's links of them, into an empty cache.

    Parameters
    ----------
    genes, lines, aliases : int
        Genes, rows of ``protein.links.detailed`` (every pair in both orders) and rows of ``protein.aliases``.
    cutoff : int
        Smallest score that is read, of 1000; 0 reads every edge.
    seed : int
        Of the links.
    folder : Path, optional
        Parent of the temporary folder of the files.
    """
    problem = chosen(locals(), "folder")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        root = Path(place)
        start = time.perf_counter()
        sizes = write_files(root, genes, lines, aliases, cutoff, seed)
        written = time.perf_counter() - start
        # A process of its own: this one has held the lines that it wrote, and torch.
        main = "from wildtype.cli.main import main; main()"
        command = [sys.executable, "-c", main, "organism", "import"]
        start = time.perf_counter()
        with open(root / "card.json", "w+") as out:
            child = subprocess.Popen(
                [*command, str(root / "organism.yaml"), "--json"],
                stdout=out,
                env=os.environ | {"WILDTYPE_CACHE": str(root / "cache")},
            )
            # Of this child alone; what is known of all children counts those of before, too.
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - start
            if child.returncode:
                raise SourceError(f"the import ended with status {child.returncode}: its message is above")
            out.seek(0)
            card = json.load(out)
    return {
        "machine": machine(),
        "problem": problem,
        "mib_of_files": sizes,
        "seconds": {"organism import": seconds, "writing the files": written},
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss * 1024 / MIB,
        "genes": card["genes"]["count"],
        "edges": {relation["name"]: relation["edges"] for relation in card["relations"]},
        "rows": {file["file"]: file["rows"] for file in card["files"]},
    }


def write_files(
    root: Path, genes: int, lines: int, aliases: int, cutoff: int, seed: int = 0
) -> dict[str, float]:
    """Write a folder with ``organism.yaml`` and its files; return their sizes in MiB as they are stored."""
    draw = generator(seed, "bench organism import")
    (root / "genes.tsv").write_text(
        "name\taliases\n" + "".join(f"GENE{i}\tsynonym{i}|old{i}\n" for i in range(genes))
    )
    links, names = f"{TAXON}.protein.links.detailed.v12.0.txt.gz", f"{TAXON}.protein.aliases.v12.0.txt.gz"
    proteins = pa.array([f"{TAXON}.ENSP{i:011d}" for i in range(genes)])
    # One pair per drawn number, so that no pair is drawn twice; then its mirror image.
    pairs = np.zeros(0, np.int64)
    while len(pairs) < lines // 2:
        more = draw.integers(0, genes * (genes - 1) // 2, lines // 2 - len(pairs) + lines // 50)
        pairs = np.unique(np.concatenate([pairs, more]))
    pairs = draw.permutation(pairs)[: lines // 2]
    upper = ((1 + np.sqrt(1 + 8 * pairs.astype(np.float64))) / 2).astype(np.int64)
    lower = np.minimum(pairs - upper * (upper - 1) // 2, upper - 1)
    head = ["protein1", "protein2", *CHANNELS, "combined_score"]
    with gzip.open(root / links, "wb", compresslevel=1) as out:
        out.write((" ".join(head) + "\n").encode())
        for one, other in ((lower, upper), (upper, lower)):
            scores = generator(seed, "bench organism import, scores")  # the same for the mirror image
            for at in range(0, len(pairs), ROWS):
                size = len(pairs[at : at + ROWS])
                table = [
                    np.where(scores.random(size) < share, scores.integers(40, 1000, size), 0)
                    for share in PRESENT
                ]
                # A link stands in the file because some channel has it.
                table[-1] = np.where(np.max(table, axis=0) == 0, 150, table[-1])
                ends = [
                    pa.DictionaryArray.from_arrays(codes[at : at + ROWS], proteins) for codes in (one, other)
                ]
                columns = [*(end.dictionary_decode() for end in ends), *map(pa.array, table)]
                columns.append(pa.array(np.max(table, axis=0)))
                options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
                csv.write_csv(pa.table(columns, names=head), out, options)
    with gzip.open(root / names, "wt", compresslevel=1) as out:
        out.write("#string_protein_id\talias\tsource\n")
        each = max(1, aliases // genes)
        for i, protein in enumerate(proteins):
            rows = [f"{protein}\tGENE{i}\tEnsembl_HGNC_symbol"]
            rows += [f"{protein}\tXP_{i * each + k:09d}.{k % 3}\tEnsembl_RefSeq" for k in range(each - 1)]
            out.write("\n".join(rows) + "\n")
    (root / "organism.yaml").write_text(
        "name: benchmark\ngenes:\n  files: [{path: genes.tsv, format: table, alias_separator: '|'}]\n"
        f"relations:\n  - {{name: string, path: {links}, aliases: {names}, cutoff: {cutoff}}}\n"
    )
    return {path.name: path.stat().st_size / MIB for path in (root / links, root / names)}
