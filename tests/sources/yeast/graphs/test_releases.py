"""Files that carry a release in their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.sources.yeast.graphs.releases import find_release


def test_the_one_release_is_found_plain_or_compressed(tmp_path: Path) -> None:
    assert find_release(tmp_path, "A-", ".txt") is None
    (tmp_path / "A-4.4.1.txt.gz").touch()
    assert find_release(tmp_path, "A-", ".txt") == (tmp_path / "A-4.4.1.txt.gz", "4.4.1")
    (tmp_path / "A-4.4.1.txt").touch()
    assert find_release(tmp_path, "A-", ".txt") == (tmp_path / "A-4.4.1.txt", "4.4.1")


def test_several_releases_are_refused(tmp_path: Path) -> None:
    for name in ("A-1.txt", "A-2.txt.gz"):
        (tmp_path / name).touch()
    with pytest.raises(SourceError, match=r"holds 2 releases of A-….txt \(1, 2\): keep one"):
        find_release(tmp_path, "A-", ".txt")
