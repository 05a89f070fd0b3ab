"""`python -m benchmarks NAME`: one bench, as a table or as JSON. Run it from the top of the repository.

Options are made from the signatures of the benches: a parameter of a plain type is an option of its name.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, get_type_hints

import typer
from rich.table import Table

from wildtype.cli.output import Json, console, print_json
from wildtype.errors import WildtypeError
from wildtype.memory import keep_freed_memory
from wildtype.report.profile_tables import pipeline_tables, rows_table

NAMES = (
    "attention",
    "step",
    "dango",
    "screen",
    "difference-gnn",
    "mask-vs-filter",
    "loader",
    "evidence",
    "trees",
    "pipelines",
    "store",
    "screen-build",
    "phenotypes",
    "masked-gin",
    "organism-import",
    "planted",
    "threads",
    "foreign-gene",
    "few-rows",
    "transfer",
)
Bench = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]
FEW_ROWS = ("table", "rows", "r", "best_baseline_r", "difference", "standard_error", "mostly")
PLANTED = ("planted", "ratio", "phase", "kind", "share", "unattributed", "found")
ROWS: dict[str, Callable[[Rows], list[Table]]] = {
    "pipelines": pipeline_tables,
    "planted": lambda rows: [rows_table(rows, PLANTED)],
    "few-rows": lambda rows: [rows_table(rows, FEW_ROWS)],
    "transfer": lambda rows: [rows_table(import_module("benchmarks.transfer").shown(rows))],
}
"""Tables of the benches that return rows."""


def bench_named(name: str) -> Bench:
    """Return a bench by its name on the command line."""
    name = name.replace("-", "_")
    bench: Bench = getattr(import_module(f"benchmarks.{name}"), f"bench_{name}")
    return bench


def command_line(names: Sequence[str] = NAMES) -> typer.Typer:
    """Return the commands of some benches."""
    app = typer.Typer(name="benchmarks", no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    # A callback, or Typer would make a single command the program itself, without its name.
    app.callback(help="Fast formulations against their plain definitions, in one run, as ratios.")(
        lambda: None
    )
    for name in names:
        app.command(name)(_command(name, bench_named(name)))
    return app


def _command(name: str, bench: Bench) -> Callable[..., None]:
    """Return a command with the options of a bench and ``--json``."""

    def command(json: bool = False, **options: Any) -> None:
        report = bench(**options)
        if json:
            print_json(report)
            return
        if name in ROWS:
            console().print(*ROWS[name](report.pop("rows")))
        table = Table("what", "value", show_header=False)
        for what, value in _flat(report):
            table.add_row(what, f"{value:,.4g}" if isinstance(value, float) else str(value))
        console().print(table)

    hints = get_type_hints(bench, include_extras=True)
    given = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(bench).parameters.values()
        if parameter.name not in ("folder", "shares")  # for tests
    ]
    wanted = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    # Typer reads the signature and the annotations of a command.
    command.__signature__ = inspect.Signature([*given, wanted])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*given, wanted)}
    command.__doc__ = (bench.__doc__ or "").partition("\n")[0]
    return command


def _flat(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [
            row
            for key, item in value.items()
            for row in _flat(item, f"{prefix} · {key}" if prefix else str(key))
        ]
    return [(prefix, value)]


def main() -> None:
    """Run the command line; an error is one sentence and exit code 1."""
    keep_freed_memory()  # as the command line of the package does
    words = sys.argv[1:]
    # Only the module of the named bench is imported: what others load would cost seconds and memory.
    names = words[:1] if words and words[0] in NAMES else NAMES
    try:
        command_line(names)(args=words, prog_name="benchmarks")
    except WildtypeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
