"""`wildtype doctor`: is this machine ready?"""

from __future__ import annotations

import os
import shutil

from rich.table import Table

from wildtype.cli.output import Json, console, print_json


def command(json: Json = False) -> None:
    """Check versions, threads, cache, disk and what is built; exit code 1 if something is wrong."""
    import torch  # noqa: F401  (its facts are part of the record)
    import typer

    from wildtype.experiments.record import environment
    from wildtype.files import cache_dir, write_text
    from wildtype.sources.catalogue import DATASETS, is_built

    record = environment()
    machine = record["machine"]
    problems = []
    cache = cache_dir()
    try:
        write_text(cache / ".doctor", "ok\n")
        (cache / ".doctor").unlink()
        free = shutil.disk_usage(cache).free / 2**30
        if free < 1:
            problems.append(f"only {free:.1f} GiB are free at {cache}: free some space")
    except OSError as error:
        free = float("nan")
        problems.append(str(error))
    facts = {
        **{name: version for name, version in record["packages"].items()},
        "python": record["python"],
        "processor": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
        "accelerator": machine["accelerator"],
        "torch threads": str(machine["threads"]),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "cache": f"{cache}, {free:.0f} GiB free",
        "datasets built": ", ".join(name for name in DATASETS if is_built(name)) or "none",
    }
    if json:
        print_json({"facts": facts, "problems": problems})
    else:
        table = Table("what", "found", show_header=False)
        for what, found in facts.items():
            table.add_row(what, found)
        console().print(table)
        for problem in problems:
            console().print(f"[red]problem:[/red] {problem}")
        if not problems:
            console().print("ready")
    if problems:
        raise typer.Exit(1)
