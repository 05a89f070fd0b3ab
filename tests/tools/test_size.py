"""What `tools/size.py` counts as code, docstring and comment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.size import as_json, package, size_of, sizes, summed, table

TEXT = '''"""A module.

Of two lines.
"""

# A comment
from a import b  # and one behind code

LIMIT = 3
"""What the limit is."""


def f(x: int) -> str:
    """Say it."""
    # why
    text = """
# no comment

no docstring"""
    return text * x
'''


def test_every_line_is_counted_once_as_what_it_is() -> None:
    found = size_of(TEXT)
    assert (found.code, found.docstring, found.comment, found.physical) == (7, 6, 2, 20)


def test_strings_are_code_and_empty_files_have_nothing() -> None:
    assert size_of('f("""a\n# b\n""")\n').code == 3
    assert size_of("").code == size_of("").physical == 0
    assert size_of("# only this\n").comment == 1


def test_rooms_and_benchmarks(tmp_path: Path) -> None:
    for name, text in {
        "src/wildtype/__init__.py": '"""Root."""\n',
        "src/wildtype/nn/__init__.py": '"""Layers."""\n',
        "src/wildtype/nn/deep/long.py": "x = 1\n" * 501,
        "benchmarks/step.py": "# why\nx = 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rooms = sizes(tmp_path)
    assert list(rooms) == ["(root)", "nn", "benchmarks"]
    assert len(package(rooms)) == 3
    figures = summed(rooms["nn"])
    assert (figures["files"], figures["code"], figures["long"], figures["median"]) == (2, 501, 1, 251)
    assert summed(rooms["benchmarks"])["per 1,000"] == 1000
    said = json.loads(as_json(rooms))
    assert said["long"] == {"src/wildtype/nn/deep/long.py": 501}
    assert said["total"]["code"] == 501
    lines = table(rooms).splitlines()
    assert [line.split()[0] for line in lines] == [
        "room",
        "(root)",
        "nn",
        "src/wildtype",
        "benchmarks",
        "src/wildtype/nn/deep/long.py:",
    ]


def test_the_command_prints_every_room_of_the_package() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, str(root / "tools" / "size.py"), "--json"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rooms = {path.parent.name for path in (root / "src" / "wildtype").glob("*/__init__.py")}
    assert set(said["rooms"]) - {"(root)", "benchmarks"} == rooms
    assert said["total"]["files"] == len(list((root / "src" / "wildtype").rglob("*.py")))
