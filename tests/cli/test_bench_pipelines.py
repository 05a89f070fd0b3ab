"""`wildtype bench pipelines` prints a table, and JSON on request."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WORDS = [
    "bench", "pipelines", "--nodes", "60", "--relations", "2", "--edges", "300", "--batch-size", "4",
    "--large-batch", "8", "--mutants", "60", "--compared", "2", "--seconds", "0.01", "--repeats", "1",
]  # fmt: skip


@pytest.mark.parametrize("json_wanted", [True, False])
def test_table_and_json(json_wanted: bool) -> None:
    words = [*WORDS, *(["--json"] if json_wanted else ["--no-reference"])]
    result = subprocess.run(
        [sys.executable, "-c", "from wildtype.cli.main import main; main()", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if json_wanted:
        report = json.loads(result.stdout)
        assert report["equal"] is True
        assert len(report["rows"]) == 15
    else:
        assert "3-hop" in result.stdout
        assert "mutants" in result.stdout
