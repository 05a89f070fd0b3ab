"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's cache; one cache serves the whole session."""
    base = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("WILDTYPE_CACHE", str(base))


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of publishers' files for yeast."""
    folder = Path(os.environ.get("WILDTYPE_MIRROR") or Path(__file__).parents[2] / "shared/data/yeast")
    if not folder.is_dir():
        pytest.skip(f"no publishers' files at {folder}: set WILDTYPE_MIRROR to a folder that holds them")
    return folder
