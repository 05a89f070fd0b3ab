"""What a public repository holds beside its code: licence, citation, continuous integration."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_licence_is_the_one_that_the_project_states() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith(f"{PROJECT['license']} License")
    assert PROJECT["license-files"] == ["LICENSE"]


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["title"].startswith(PROJECT["name"])


def test_the_public_workflow_runs_the_same_script() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert "bash .ci/run" in steps
    for target in ("make test\n", "make test-slow\n"):
        assert target in (ROOT / ".ci/run").read_text(encoding="utf-8")
