"""Compiled code is kept where only its owner can write, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from wildtype import compiled
from wildtype.compiled import FOLDER, njit, why_not_private


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    numba.core.config.reload_config()
    compiled._folder.cache_clear()
    yield
    compiled._folder.cache_clear()


def one_more(x: int) -> int:
    return x + 1


def test_code_is_kept_in_the_cache_with_rights_of_its_owner_alone(tmp_path: Path) -> None:
    before = numba.config.CACHE_DIR
    assert njit(cache=True)(one_more)(1) == 2
    folder = tmp_path / "cache" / FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.rglob("*.nbi"))
    assert before == numba.config.CACHE_DIR


def test_a_folder_of_somebody_else_keeps_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(UserWarning, match=r"code is not kept.*cache/compiled' belongs to another user"):
        kept = njit(cache=True)(one_more)
    assert kept(1) == 2
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_cache_that_others_can_write_gives_way_to_that_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    assert compiled._folder() == tmp_path / "home" / ".cache" / "wildtype" / FOLDER


def test_what_is_no_private_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    assert why_not_private(place) == ""
    assert place.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(place)
    assert "is a link" in why_not_private(tmp_path / "link")
    (tmp_path / "file").touch()
    assert "cannot be used" in why_not_private(tmp_path / "file" / "below")


CALLER = """
import sys
import numpy as np
from wildtype.compiled import njit
from parts import FACTOR, Pair, twice

@njit(cache=True)
def total(pair, scale):
    return twice(pair.one) + FACTOR * pair.two + scale

print(total(Pair(1, 10), 100), sum(total.stats.cache_hits.values()))
"""
PARTS = """
from typing import NamedTuple
from wildtype.compiled import njit

FACTOR = 1

class Pair(NamedTuple):
    one: int
    two: int

@njit(cache=True)
def twice(x):
    return 2 * x
"""


@pytest.fixture
def run_caller(tmp_path: Path) -> Callable[[str], str]:
    """What the caller prints, its sum and how often kept code was used, where its parts are these."""

    def run(parts: str) -> str:
        path = tmp_path / "parts.py"
        path.write_text(parts)
        # Times of files are compared, which may be too coarse to tell two writes of a test apart.
        os.utime(path, (len(parts), len(parts)))
        return subprocess.run(
            [sys.executable, "-B", tmp_path / "caller.py"], capture_output=True, text=True, check=True
        ).stdout.strip()

    (tmp_path / "caller.py").write_text(CALLER)
    return run


@pytest.mark.parametrize(
    ("before", "after", "total"),
    [("return 2 * x", "return 300 * x", 410), ("FACTOR = 1", "FACTOR = 50", 602)],
    ids=["function", "constant"],
)
def test_what_is_called_may_change(
    run_caller: Callable[[str], str], before: str, after: str, total: int
) -> None:
    assert run_caller(PARTS) == "112 0"
    assert run_caller(PARTS) == "112 1"
    assert run_caller(PARTS.replace(before, after)) == f"{total} 0"


def is_even(n: int) -> bool:
    return n == 0 or odd.py_func(n - 1)


def is_odd(n: int) -> bool:
    return n > 0 and even.py_func(n - 1)


even, odd = SimpleNamespace(py_func=is_even), SimpleNamespace(py_func=is_odd)


def test_functions_that_call_each_other_are_one_file() -> None:
    found = list(compiled._parts(is_even))
    assert found
    assert all(part.startswith(__file__) for part in found)


def test_code_that_names_a_class_that_is_no_more_is_compiled_anew(
    run_caller: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "records.py").write_text(PARTS[: PARTS.index("@njit")])
    assert (
        run_caller("from records import *\nfrom records import njit\n" + PARTS[PARTS.index("@njit") :])
        == "112 0"
    )
    (tmp_path / "records.py").unlink()
    assert run_caller(PARTS) == "112 0"
    assert run_caller(PARTS) == "112 1"
