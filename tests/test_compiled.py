"""Compiled code is kept where only its owner can write, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

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
