"""The site's hook: scripts with cells (``# %%``) are executed and become pages, code and what it prints."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

CELL = "\n# %%"
MARK = "\x1e\n"
"""Stands between what two cells print."""
executed = True
"""False for ``mkdocs serve``: pages that are only looked at while they are written show code alone."""


def printed(script: str) -> list[str]:
    """Execute a script in an empty folder; return what each cell prints.

    Raises
    ------
    RuntimeError
        If it fails, with its last words.
    """
    marked = script.replace(CELL, f"\nprint({MARK!r}, end='', flush=True){CELL}")
    with TemporaryDirectory() as folder:
        said = subprocess.run(
            [sys.executable, "-c", marked], cwd=folder, capture_output=True, text=True, check=False
        )
    if said.returncode:
        raise RuntimeError(f"a script of the documents fails: {said.stderr.strip()[-2000:]}")
    return said.stdout.split(MARK)[1:]


def page(script: str, name: str, outputs: Sequence[str] = ()) -> str:
    """Return a script as Markdown: cells of ``# %% [markdown]`` as text, the others as Python, each with what
    it prints.

    What stands before the first cell is left out.
    """
    parts = []
    cells = script.split(CELL)[1:]
    for cell, output in zip(cells, outputs or [""] * len(cells), strict=True):
        kind, _, text = cell.partition("\n")
        lines = text.strip("\n").splitlines()
        if kind.strip() == "[markdown]":
            parts.append("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))
        elif lines:
            parts.append("\n".join(["```python", *lines, "```"]))
        if output.strip():
            parts.append("\n".join(["```text", *output.rstrip().splitlines(), "```"]))
    about = f"The script: [{name}]({name}). It was executed when this page was made."
    return "\n\n".join([*parts, about]) + "\n"


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Remember what was asked for."""
    global executed
    executed = command != "serve"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every script in ``notebooks/``."""
    from mkdocs.structure.files import File

    for path in sorted((Path(config.docs_dir) / "notebooks").glob("*.py")):
        script = path.read_text(encoding="utf-8")
        content = page(script, path.name, printed(script) if executed else [])
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files
