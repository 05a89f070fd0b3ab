from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wildtype.datasets.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, open for writing."""
    with Store.create(tmp_path / "store.duckdb") as opened:
        yield opened
