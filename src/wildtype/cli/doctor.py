"""`wildtype doctor`: checks of the installation and the speed of this machine."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Any

import typer
from rich.table import Table

from wildtype.cli.output import Json, console, notes, print_json


def command(
    speed: Annotated[
        bool,
        typer.Option(
            "--speed", help="Also time attention, a training step, evidence and a screen (half a minute)."
        ),
    ] = False,
    device: Annotated[
        str, typer.Option(help="With --speed: cpu (default) or cuda, for attention and the training step.")
    ] = "",
    json: Json = False,
) -> None:
    """Check versions, threads, cache, disk and built data sets; the exit code is 1 if there is a problem."""
    from wildtype.errors import ConfigError

    if device and not speed:
        raise ConfigError(f"--device={device} is the device of --speed: give both")
    facts, problems = _check()
    report: dict[str, Any] = {"facts": facts, "problems": problems}
    if speed:
        from wildtype.profiling.speed import machine_speed

        report["speed"] = machine_speed(device or "cpu", log=lambda name: notes().print(f"timing {name}"))
    if json:
        print_json(report)
    else:
        _print(report)
    if problems:
        raise typer.Exit(1)


def _check() -> tuple[dict[str, str], list[str]]:
    """Return facts about this machine and installation, and their problems."""
    import torch  # noqa: F401  (machine() reports torch only where it is loaded)

    from wildtype.experiments.record import environment
    from wildtype.files import cache_dir, write_text
    from wildtype.sources.catalogue import DATASETS, is_built

    record = environment()
    machine = record["machine"]
    problems = []
    cache = cache_dir()
    try:
        # Permissions are not enough: disks can be full, and mounts read-only. So a file is written.
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
    return facts, problems


def _print(report: dict[str, Any]) -> None:
    table = Table("what", "found", show_header=False)
    for what, found in report["facts"].items():
        table.add_row(what, found)
    console().print(table)
    if "speed" in report:
        console().print(_speed_table(report["speed"]))
    for problem in report["problems"]:
        console().print(f"problem: {problem}")
    if not report["problems"]:
        console().print("ready")


def _speed_table(speed: dict[str, Any]) -> Table:
    sizes, attention = speed["sizes"], speed["attention"]
    per_second = speed["evidence"]["queries_per_second"]
    rows = (
        (
            f"attention of {sizes['nodes']:,} genes with graph priors, forward and backward",
            f"{attention['seconds']['regularised']:.3g} s",
            f"{attention['ratios']['regularised_to_plain']:.2f} times plain attention",
        ),
        (
            f"training step, {sizes['genes']:,} genes, {sizes['batch_size']:,} mutants",
            f"{speed['step']['seconds_per_step']:.3g} s",
            f"{speed['step']['mutants_per_second']:,.0f} mutants/s",
        ),
        ("measured mutants one gene apart", f"{per_second['lookup']:,.0f} queries/s", "on the CPU"),
        ("the same with similarities", f"{per_second['whole tokens']:,.0f} queries/s", "on the CPU"),
        (
            f"screen of all triples of {sizes['candidates']:,} genes",
            f"{speed['screen']['mutants_per_second']:,.0f} mutants/s",
            "on the CPU",
        ),
    )
    table = Table(f"speed on {speed['device']}", "measured", "")
    for row in rows:
        table.add_row(*row)
    return table
