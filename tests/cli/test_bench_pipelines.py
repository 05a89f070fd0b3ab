"""`wildtype bench pipelines` prints a table, and JSON on request."""

from __future__ import annotations

import json

import pytest

from tests.command import wildtype

WORDS = [
    "bench", "pipelines", "--nodes", "60", "--relations", "2", "--edges", "300", "--batch-size", "4",
    "--large-batch", "8", "--mutants", "60", "--compared", "2", "--seconds", "0.01", "--repeats", "1",
]  # fmt: skip


@pytest.mark.parametrize("json_wanted", [True, False])
def test_table_and_json(json_wanted: bool) -> None:
    words = [*WORDS, *(["--json"] if json_wanted else ["--no-reference"])]
    result = wildtype(*words)
    assert result.returncode == 0, result.stderr
    if json_wanted:
        report = json.loads(result.stdout)
        assert report["equal"] is True
        assert len(report["rows"]) == 15
    else:
        assert "3-hop" in result.stdout
        assert "mutants" in result.stdout
