"""Print how large every room is: `python tools/size.py`, or with `--json`.

Counted are the Python files below `src/wildtype`, and below `benchmarks` where there is such a folder; files
of the root of the package are the room `(root)`. A line counts once, as the first of these that it is:

docstring   a line of a docstring of a module, class or function, or of a string that is a statement by itself
            and so documents the name above it; blank lines within included
blank       nothing but white space
comment     nothing but a comment
code        every other line; a comment behind code makes it no comment line

`per 1,000` is comment lines per 1,000 code lines. `median` is that of the files' physical lines, and `long`
the number of files of more than 500.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PACKAGE = "src/wildtype"
BENCHMARKS = "benchmarks"
LONGEST = 500
"""Physical lines that a file should not exceed."""

LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Size:
    """Lines of one file, by what they are."""

    path: str
    code: int
    docstring: int
    comment: int
    physical: int


def size_of(text: str, path: str = "") -> Size:
    """Count the lines of one file of Python."""
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    documented = {
        number
        for node in statements
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = text.splitlines()
    comments, others = set(), set()
    # By tokens, since a line of a string may begin with a hash, and a comment may follow code.
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in LAYOUT:
            others |= set(range(token.start[0], token.end[0] + 1))
    blank = {number for number, line in enumerate(lines, 1) if not line.strip()}
    code = others - documented - blank
    return Size(path, len(code), len(documented), len(comments - others - documented), len(lines))


def sizes(root: Path = ROOT) -> dict[str, list[Size]]:
    """Return the files of every room, rooms of the package first."""
    found: dict[str, list[Size]] = {}
    for folder in (PACKAGE, BENCHMARKS):
        for path in sorted((root / folder).rglob("*.py")):
            within = path.relative_to(root / folder).parts
            room = BENCHMARKS if folder == BENCHMARKS else within[0] if len(within) > 1 else "(root)"
            found.setdefault(room, []).append(
                size_of(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
            )
    return found


def summed(files: Sequence[Size]) -> dict[str, float]:
    """Return the figures of some files."""
    code, comment = sum(file.code for file in files), sum(file.comment for file in files)
    return {
        "files": len(files),
        "code": code,
        "docstring": sum(file.docstring for file in files),
        "comment": comment,
        "per 1,000": round(1000 * comment / code, 1) if code else 0.0,
        "median": median(file.physical for file in files) if files else 0,
        "long": sum(file.physical > LONGEST for file in files),
    }


def too_long(files: Sequence[Size]) -> dict[str, int]:
    """Return the physical lines of every file that has too many."""
    return {file.path: file.physical for file in files if file.physical > LONGEST}


def table(rooms: Mapping[str, Sequence[Size]]) -> str:
    """Return the figures of every room and of the package as a table in plain text."""
    rows = {room: summed(files) for room, files in rooms.items() if room != BENCHMARKS}
    rows[PACKAGE] = summed(package(rooms))
    if BENCHMARKS in rooms:
        rows[BENCHMARKS] = summed(rooms[BENCHMARKS])
    lines = [["room", *rows[PACKAGE]]]
    lines += [[room, *(f"{value:,}" for value in figures.values())] for room, figures in rows.items()]
    text = [f"{line[0]:<12}" + "".join(f"{cell:>11}" for cell in line[1:]) for line in lines]
    for files in rooms.values():
        text += [f"{path}: {count} lines" for path, count in too_long(files).items()]
    return "\n".join(text)


def as_json(rooms: Mapping[str, Sequence[Size]]) -> str:
    """Return the same as JSON."""
    long = {path: count for files in rooms.values() for path, count in too_long(files).items()}
    by_room = {room: summed(files) for room, files in rooms.items()}
    return json.dumps({"rooms": by_room, "total": summed(package(rooms)), "long": long}, indent=1)


def package(rooms: Mapping[str, Sequence[Size]]) -> list[Size]:
    """Return all files but those of the benchmarks."""
    return [file for room, files in rooms.items() if room != BENCHMARKS for file in files]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    print((as_json if parser.parse_args().json else table)(sizes()))
