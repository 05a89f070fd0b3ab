"""`wildtype ablate` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype

PLAN = """
base: [data=ecoli-core-growth, data.rows=400, training.epochs=1, model.width=16, model.heads=4,
       model.layers=0, model.head.heads=2, run.replicates=20, run.progress=false]
factors:
  graphs:
    rewired: [data.rewired=true, model.layers=1, "model.prior.relations=[complex]"]
    unknown: ["data.graphs=[ppi]"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return str(path)


def test_a_dry_run_lists_the_runs_and_writes_nothing(plan: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = wildtype("ablate", plan, "--dry-run", "--json", "--seeds", "3,4", "--folder", str(out))
    assert said.returncode == 0, said.stderr
    steps = json.loads(said.stdout)
    assert [step["run"] for step in steps[:3]] == [
        "base/as-base/seed-3",
        "base/as-base/seed-4",
        "graphs/rewired/as-base/seed-3",
    ]
    assert {step["state"] for step in steps} == {"planned"}
    assert not out.exists()


def test_runs_are_the_tasks_of_a_job_array(plan: str, tmp_path: Path) -> None:
    preset, out = tmp_path / "preset.yaml", tmp_path / "out"
    preset.write_text("program: called\n")
    words = ("ablate", plan, "--seeds", "3,4", "--folder", str(out), "--slurm", "--preset", str(preset))
    said = wildtype(*words, "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "#SBATCH --array=0-5" in said.stdout.splitlines()
    assert said.stdout.rstrip().endswith(
        f'called ablate --only "$SLURM_ARRAY_TASK_ID" {plan} --seeds 3,4 --folder {out}'
    )
    assert "with --tables" in said.stderr
    assert not out.exists()
    assert_one_sentence(wildtype(*words, "--dry-run", "--only", "1"), "--only 1: leave --slurm out")
    assert_one_sentence(wildtype(*words[:-3], "--tables", "--only", "1"), "leave --tables out")


def test_a_search_is_an_array_of_equal_tasks(tmp_path: Path) -> None:
    words = ("tune", "ecoli-core", "--folder", str(tmp_path / "s"), "--workers", "8")
    said = wildtype(*words, "--slurm", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "#SBATCH --array=0-7" in said.stdout.splitlines()
    assert said.stdout.rstrip().endswith(f"wildtype {' '.join(words)}")
    assert "--array" not in wildtype(*words[:-1], "1", "--slurm", "--dry-run").stdout
    assert_one_sentence(wildtype(*words), "--workers 8", "with --slurm only")
    assert_one_sentence(wildtype(*words[:-1], "0", "--slurm"), "--workers 0")


def test_wrong_words_are_one_sentence(plan: str) -> None:
    assert_one_sentence(wildtype("ablate", plan, "model.layer=2"), "base: 'model.layer' is not a setting")
    assert_one_sentence(wildtype("ablate", plan, "seed=2"), "given overrides", "'seed=2' is set run by run")
    assert_one_sentence(wildtype("ablate", plan, "--budget", "2"), "'2' is no time")
    assert_one_sentence(wildtype("ablate", plan, "--seeds", "a"), "--seeds='a'")
    assert_one_sentence(wildtype("ablate", "fly"), "no ablation 'fly'", "ecoli-core")


@pytest.mark.slow
def test_from_words_to_tables(plan: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("ablate", plan, "--seeds", "0", "--folder", str(out), "--replicates", "50", "--budget", "10m")
    said = wildtype(*words, "--json")
    assert said.returncode == 1  # one level fails
    assert "1 runs failed, graphs/unknown/as-base/seed-0 first" in " ".join(said.stderr.split())
    report = json.loads(said.stdout)
    rows = {row["level"]: row for row in report["tables"][0]["rows"]}
    assert rows["rewired"]["seeds"] == [0]
    assert rows["rewired"]["seconds_per_epoch"] > 0
    assert rows["rewired"]["test_difference"]["low"] is not None
    assert "data.graphs names 'ppi'" in rows["unknown"]["remarks"][0]
    assert (out / "ablation.md").read_text() == wildtype(*words, "--markdown").stdout
    printed = wildtype(*words)
    assert "graphs: rewired" in printed.stdout
    assert "Choose by validation" in printed.stdout
    card = json.loads((out / "graphs/rewired/as-base/seed-0/card.json").read_text())
    assert "every gene graph rewired at random" in card["organism_description"]
