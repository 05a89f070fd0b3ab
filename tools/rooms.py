"""Draw the rooms of the package and who imports whom, from the import statements: `make picture`.

A row is as far above the bottom as its longest way down. An arrow that follows from others is left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "wildtype"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
WIDTH, HEIGHT, ROW, MARGIN = 108, 34, 84, 24


def imports() -> dict[str, set[str]]:
    """Return, for every room, the rooms that its files import."""
    rooms = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in sorted(rooms)}
    for room, below in found.items():
        for path in sorted((SOURCES / room).rglob("*.py")):
            for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [node.module]
                elif isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                parts = [name.split(".") for name in names if name.startswith("wildtype.")]
                below |= {part[1] for part in parts if part[1] in rooms and part[1] != room}
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give the statements of a file at any depth, without what they compute: imports are among them."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, block, None)
        for one in below if isinstance(below, list) else []:
            yield one
            yield from statements(one)


def levels(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return how many rooms the longest way down from each room passes."""
    depth: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in depth:
            depth[room] = 1 + max((of(below) for below in edges[room]), default=-1)
        return depth[room]

    for room in edges:
        of(room)
    return depth


def direct(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that do not follow from others."""

    def reach(room: str) -> set[str]:
        return edges[room].union(*(reach(below) for below in edges[room]))

    return [
        (room, below)
        for room, all_below in edges.items()
        for below in sorted(all_below)
        if not any(below in reach(other) for other in all_below)
    ]


def laid_out(edges: dict[str, set[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Return what stands in each row, bottom first, and the stops of every arrow.

    An arrow that passes rows has a stop in each of them, which takes the place of a room, so that it passes
    between rooms. Rows are ordered by the mean place of what they are joined to, which avoids crossings.
    """
    depth = levels(edges)
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for room in edges:
        rows[depth[room]].append(room)
    arrows = []
    for room, below in direct(edges):
        stops = [f"{room}>{below}>{level}" for level in range(depth[room] - 1, depth[below], -1)]
        for stop in stops:
            rows[int(stop.rsplit(">", 1)[1])].append(stop)
        arrows.append([room, *stops, below])
    joined: dict[str, list[str]] = {}
    for arrow in arrows:
        for one, other in pairwise(arrow):
            joined.setdefault(one, []).append(other)
            joined.setdefault(other, []).append(one)
    for sweep in range(8):
        order = range(1, len(rows)) if sweep % 2 else range(len(rows) - 2, -1, -1)
        for level in order:
            near = rows[level + (-1 if sweep % 2 else 1)]
            share = {name: (i + 1) / (len(near) + 1) for i, name in enumerate(near)}

            def middle(name: str, share: dict[str, float] = share) -> float:
                places = [share[other] for other in joined.get(name, []) if other in share]
                return sum(places) / len(places) if places else 0.5

            rows[level].sort(key=lambda name: (middle(name), name))
    return rows, arrows


def drawing(edges: dict[str, set[str]]) -> str:
    """Return the picture as SVG."""
    rows, arrows = laid_out(edges)
    width = MARGIN * 2 + max(len(row) for row in rows) * (WIDTH + MARGIN)
    height = MARGIN * 2 + len(rows) * ROW - (ROW - HEIGHT)
    place = {
        name: (width * (i + 1) / (len(row) + 1), height - MARGIN - HEIGHT / 2 - level * ROW)
        for level, row in enumerate(rows)
        for i, name in enumerate(row)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="14" role="img" '
        'aria-label="The rooms of the package; arrows lead to what a room imports.">',
        '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker></defs>',
        f'  <rect width="{width}" height="{height}" fill="#ffffff"/>',
        '  <g stroke="#555" stroke-width="1.4" fill="none" marker-end="url(#tip)">',
    ]
    for arrow in arrows:
        x, y = place[arrow[0]]
        y += HEIGHT / 2
        path = f"M{x:.0f} {y:.0f}"
        for stop in arrow[1:]:
            to_x, to_y = place[stop]
            half = HEIGHT / 2 + (0 if stop in edges else -HEIGHT / 2)
            bend = (to_y - half - y) / 2
            path += (
                f" C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - half - bend:.0f} {to_x:.0f} {to_y - half:.0f}"
            )
            x, y = to_x, to_y - half
        lines.append(f'    <path d="{path}"/>')
    lines.append("  </g>")
    for room in edges:
        x, y = place[room]
        lines.append(
            f'  <rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="8" fill="#eef4fb" stroke="#2b6cb0"/><text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" '
            f'fill="#222">{escape(room)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(imports()), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
