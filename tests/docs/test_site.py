"""The site: every page can be reached, it is built without a warning, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tools.rooms import PICTURE, direct, drawing, imports
from tools.site import page, printed

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))


def listed(nav: Any) -> list[str]:
    """Return the pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [
        one for entry in nav for one in listed(list(entry.values()) if isinstance(entry, dict) else entry)
    ]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    pages += [f"notebooks/{path.stem}.md" for path in NOTEBOOKS]
    assert sorted(listed(CONFIG["nav"])) == sorted(pages)


def test_cells_become_text_and_code() -> None:
    script = '"""Left out."""\n\n# %% [markdown]\n# # Title\n#\n# Text with `code`.\n\n'
    script += "# %%\nx = 1  # %% no cell\n\n# %%\n"
    text, code, link = page(script, "a.py").split("\n\n```python\n")[0], page(script, "a.py"), "[a.py](a.py)"
    assert text == "# Title\n\nText with `code`."
    assert "```python\nx = 1  # %% no cell\n```" in code
    assert code.count("```") == 2
    assert link in code


def test_cells_stand_with_what_they_print() -> None:
    script = 'print("left out")\n\n# %% [markdown]\n# Text.\n\n# %%\nx = 20\n\n# %%\nprint(x + 1)\n'
    outputs = printed(script)
    assert outputs == ["", "", "21\n"]
    assert "```python\nprint(x + 1)\n```\n\n```text\n21\n```" in page(script, "a.py", outputs)
    with pytest.raises(RuntimeError, match="division by zero"):
        printed(f"{script}\n# %%\n1 / 0\n")


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawing(imports()), "run `make picture`"


def test_arrows_that_follow_from_others_are_left_out() -> None:
    edges = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert direct(edges) == [("a", "b"), ("b", "c")]
    assert drawing(edges).count("<path d=") == 3  # and the tip


def test_make_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.M)
    assert phony is not None
    described = re.findall(r"^([a-z-]+):.*?## ", text, re.M)
    assert sorted(described) == sorted(phony[1].split())


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for name in listed(CONFIG["nav"]):
        html = (tmp_path / "site" / name.replace(".md", ".html")).read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)|<link[^>]+href=\"([^\"]+)", html)
        assert loaded
        assert not [address for pair in loaded for address in pair if "//" in address], name
    reference = (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")
    assert 'id="wildtype.fit"' in reference
    assert "training__epochs" in reference
    for script in NOTEBOOKS:  # the build executes them
        cells = script.read_text(encoding="utf-8").split("\n# %%\n")[1:]
        telling = sum("print(" in cell for cell in cells)
        html = (tmp_path / "site" / "notebooks" / f"{script.stem}.html").read_text(encoding="utf-8")
        assert html.count('class="highlight"') >= len(cells) + telling > len(cells)
