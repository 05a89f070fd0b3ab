"""`wildtype reproduce`: repeat a run from its record, and compare the two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json


def command(
    run: Annotated[Path, typer.Argument(help="Run directory of a finished run.")],
    folder: Annotated[
        Path | None, typer.Option(help="Run directory of the new run; default: a temporary one.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest difference of headline metrics.")] = 0.01,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Train a run again from its settings, and print how the results differ.

    The exit code is 0 only if every metric is within the tolerance. A run with training.deterministic=true,
    on the same machine with the same versions, must be equal to the bit.
    """
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    from rich.table import Table

    from wildtype.experiments.reproduce import reproduce

    with TemporaryDirectory(prefix="wildtype-") if folder is None else nullcontext(folder) as target:
        found = reproduce(
            run, Path(target) / "run" if folder is None else folder, tolerance=tolerance, log=notes().print
        )
    if json:
        print_json(found.to_json())
    else:
        table = Table("model", "phenotype", "then", "now", "largest difference", title=found.verdict)
        for model in found.models:
            numbers = (f"{model.then:.6f}", f"{model.now:.6f}", f"{model.largest:.3g}")
            table.add_row(model.model, model.phenotype, *numbers)
        console().print(table)
        console().print(f"weights equal to the bit: {'yes' if found.same_weights else 'no'}")
        for name, (then, now) in found.changed.items():
            console().print(f"{name}: {then} then, {now} now", highlight=False, soft_wrap=True)
    if not found.success:
        raise typer.Exit(1)
