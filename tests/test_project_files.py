"""What a public repository holds beside its code: licence, citation, continuous integration."""

from __future__ import annotations

import re
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


def test_the_release_is_built_from_the_tag_of_this_version() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert any(step.startswith("make wheel") for step in steps)
    assert any("GITHUB_REF_NAME" in step and "pyproject.toml" in step for step in steps)


def test_the_changelog_has_a_section_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(PROJECT['version'])} \(\d{{4}}-\d\d-\d\d\)$", text, re.MULTILINE)


def test_the_conda_recipe_needs_what_the_project_needs() -> None:
    text = (ROOT / "conda/meta.yaml").read_text(encoding="utf-8")
    assert f'"{PROJECT["version"]}"' in text
    recipe = yaml.safe_load(re.sub(r"{{.*?}}", "x", re.sub(r"{%.*?%}", "", text)))
    conda = {
        "torch": "pytorch",
        "duckdb": "python-duckdb",
        "Jinja2": "jinja2",
        "matplotlib": "matplotlib-base",
    }
    wanted = {"python": PROJECT["requires-python"]}
    for each in PROJECT["dependencies"]:
        name, bounds = re.fullmatch(r"([\w.-]+)(.*)", each).groups()  # type: ignore[union-attr]
        wanted[conda.get(name, name)] = bounds
    assert dict(each.split(" ", 1) for each in recipe["requirements"]["run"]) == wanted
    assert recipe["about"]["license"] == PROJECT["license"]
