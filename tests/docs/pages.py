"""The documents' pages, and every block of commands and Python in them.

A comment on the line before a block says what becomes of it in the tests:

    <!-- run -->                                       every command is executed, as it stands
    <!-- run: screen; train + training.epochs=1; not run: needs a cluster -->
                                                       these are, the second with further words
    <!-- run: predict; with files: train; data sources; not run: hours -->
                                                       the second and third where there is a folder of
                                                       publishers' files, trainings in little
    <!-- not run: needs a cluster -->                  none is
    <!-- file: gpu.yaml -->                            the block is a file that commands read

``<!-- page not run: … -->`` at the top of a page stands for its blocks without a comment. Commands that are
not executed are held against the command line and the settings: no page names what does not exist.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMENT = re.compile(r"<!-- (page not run|not run|run|with files|file)(?:: (.+))? -->")


@dataclass(frozen=True)
class Mark:
    """What is to become of a block.

    Attributes
    ----------
    runs : dict or None
        Further words, by the command that is executed; None: every command is, as it stands.
    with_files : dict
        The same of commands that are executed where there are publishers' files.
    reason : str
        Why the others are not executed.
    file : str
        Name of the file that the block is.
    """

    runs: dict[str, list[str]] | None = field(default_factory=dict)
    with_files: dict[str, list[str]] = field(default_factory=dict)
    reason: str = ""
    file: str = ""

    def words(self, command: str, *, with_files: bool = False) -> list[str] | None:
        """Return the further words that a command is executed with; None where it is not executed."""
        runs = self.with_files if with_files else self.runs
        if runs is None:
            return []
        return next((more for name, more in runs.items() if f"{command} ".startswith(f"{name} ")), None)

    @property
    def named(self) -> list[str]:
        """Commands that the mark names."""
        return [*(self.runs or {}), *self.with_files]


@dataclass(frozen=True)
class Block:
    """A block of a page: where it begins, its language, its lines and its mark, if it has one."""

    page: str
    line: int
    language: str
    text: str
    mark: Mark | None

    @property
    def place(self) -> str:
        """Where the block stands."""
        return f"{self.page}:{self.line}"


def read_mark(line: str) -> Mark | None:
    """Return what a comment says, or None where the line is none."""
    found = COMMENT.fullmatch(line.strip())
    if found is None:
        return None
    verb, rest = found[1], found[2] or ""
    if verb == "file":
        return Mark(file=rest)
    if verb in ("not run", "page not run"):
        return Mark(reason=rest)
    if not rest:
        return Mark(runs=None)
    mark, reason, files = Mark(), "", verb == "with files"
    assert mark.runs is not None
    for part in rest.split("; "):
        if part.startswith("not run: "):
            reason = part.removeprefix("not run: ")
            continue
        files = files or part.startswith("with files: ")
        name, _, more = part.removeprefix("with files: ").partition(" + ")
        (mark.with_files if files else mark.runs)[name] = more.split()
    return replace(mark, reason=reason)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    whole = next(
        (m for line in lines if line.startswith("<!-- page not run") and (m := read_mark(line))), None
    )
    start = None
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            continue
        if start is None:
            start = number
            continue
        mark = (read_mark(lines[start - 1]) if start else None) or whole
        text = "\n".join(lines[start + 1 : number]) + "\n"
        language = lines[start].strip().removeprefix("```")
        found.append(Block(str(page.relative_to(ROOT)), start + 1, language, text, mark))
        start = None
    assert start is None, f"{page}:{(start or 0) + 1}: the block has no end"
    return found


def shell_commands(block: Block) -> list[str]:
    """Return the commands of a block, each with the lines that belong to it, without what they print."""
    found: list[str] = []
    whole = True
    for line in block.text.splitlines():
        if line.startswith("$ "):
            assert whole, f"{block.place}: {found[-1]!r} is not whole"
            found.append(line[2:])
        elif not whole:
            found[-1] += f"\n{line}"
        else:
            continue
        whole = _is_whole(found[-1])
    assert whole, f"{block.place}: {found[-1]!r} is not whole"
    return found


def _is_whole(command: str) -> bool:
    """Whether bash would wait for no further line."""
    if command.endswith("\\"):
        return False
    if not re.match(r"for |cat .*<<", command):
        return True
    said = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
    return not said.returncode and not said.stderr
