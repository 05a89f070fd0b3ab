"""The site's hook: scripts with cells (``# %%``) become pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def page(script: str, name: str) -> str:
    """Return a script as Markdown: cells of ``# %% [markdown]`` as text, the others as Python.

    What stands before the first cell is left out.
    """
    parts = []
    for cell in script.split("\n# %%")[1:]:
        kind, _, text = cell.partition("\n")
        lines = text.strip("\n").splitlines()
        if kind.strip() == "[markdown]":
            parts.append("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))
        elif lines:
            parts.append("\n".join(["```python", *lines, "```"]))
    return "\n\n".join([*parts, f"The script: [{name}]({name}). `make test-slow` executes it."]) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every script in ``notebooks/``."""
    from mkdocs.structure.files import File

    for path in sorted((Path(config.docs_dir) / "notebooks").glob("*.py")):
        content = page(path.read_text(encoding="utf-8"), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files
