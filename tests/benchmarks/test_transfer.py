"""The bench of genes that are new to one screen, on predictions made here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import transfer
from benchmarks.transfer import bench_transfer, shown
from wildtype.errors import ConfigError

GENES = [f"G{i:02d}" for i in range(30)]
OTHER = [(a, b) for i, a in enumerate(GENES[:20]) for b in GENES[i + 1 : 20] if (i + int(b[1:])) % 2]
"""Pairs that another screen measured: half of those of the first twenty genes."""


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let settings say what the names of run directories say, and datasets be the pairs above."""

    def settings(path: Path) -> SimpleNamespace:
        side, seed, fold = path.parent.name.split("-")
        screens = ["other"] if side == "joint" else []
        return SimpleNamespace(
            seed=int(seed), split=SimpleNamespace(fold=int(fold)), data=SimpleNamespace(screens=screens)
        )

    frame = pd.DataFrame({"genes": [",".join(pair) for pair in OTHER]})
    monkeypatch.setattr(transfer, "read_settings", settings)
    monkeypatch.setattr(transfer, "load_dataset", lambda name: SimpleNamespace(to_pandas=lambda: frame))
    monkeypatch.setattr(transfer, "LEAST", 20)


def a_run(folder: Path, name: str, noise: float, *, hides: bool = True) -> Path:
    """Write the predictions of a run, whose errors have a standard deviation ``noise``."""
    _, seed, fold = name.split("-")
    pairs = [(a, b) for i, a in enumerate(GENES) for b in GENES[i + 1 :]]
    value = np.random.default_rng([int(seed), int(fold)]).normal(0, 0.1, len(pairs))
    new = [sum(hides and int(gene[1:]) % 5 == int(fold) for gene in pair) for pair in pairs]
    (folder / name).mkdir()
    pd.DataFrame(
        {
            "genes": [",".join(pair) for pair in pairs],
            "kinds": "absent,absent",
            "phenotype": "epsilon",
            "value": value,
            "unseen": new,
            "pair_screen": value + np.random.default_rng(7).normal(0, noise, len(pairs)),
        }
    ).to_parquet(folder / name / "predictions.parquet")
    held = [gene for gene in GENES if int(gene[1:]) % 5 == int(fold)]
    (folder / name / "split.json").write_text(json.dumps({"held_out_genes": {"test": held} if hides else {}}))
    return folder / name


def test_rows_are_grouped_by_what_the_other_screen_measured(tmp_path: Path) -> None:
    runs = [
        a_run(tmp_path, f"{side}-{seed}-{fold}", noise)
        for side, noise in (("joint", 0.05), ("alone", 0.2))
        for seed in range(2)
        for fold in range(2)
    ]
    rows = {row["rows"]: row for row in bench_transfer(runs, replicates=50)["rows"]}
    measured = {tuple(sorted(pair)) for pair in OTHER}
    expected = {"all": 0, "measured": 0, "known": 0, "not elsewhere": 0}
    for fold in range(2):
        for i, a in enumerate(GENES):
            for b in GENES[i + 1 :]:
                new = [gene for gene in (a, b) if int(gene[1:]) % 5 == fold]
                if len(new) == 1:
                    kind = "known" if new[0] in GENES[:20] else "not elsewhere"
                    expected["measured" if (a, b) in measured else kind] += 2  # seeds
                    expected["all"] += 2
    found = {text: row["n"] for text, row in rows.items() if text.startswith("new gene")}
    assert list(found.values()) == list(expected.values())
    for row in rows.values():
        assert row["with screens r"] > row["alone r"]
        assert row["r difference"] == pytest.approx(row["with screens r"] - row["alone r"])
        assert 0 < row["r low"] < row["r difference"] < row["r high"]
        assert len(str(shown([row])[0]["r difference"]).split()) == 3
        if "average precision low" in row:  # not where a seed has no negative interaction
            assert row["with screens average precision"] > row["alone average precision"]


def test_two_new_genes_are_grouped_by_how_many_another_screen_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair of which one new gene is measured elsewhere was counted with those that nobody measured."""
    monkeypatch.setattr(transfer, "LEAST", 1)
    runs = [a_run(tmp_path, f"{side}-{seed}-0", 0.1) for side in ("joint", "alone") for seed in range(2)]
    new = [gene for gene in GENES if int(gene[1:]) % 5 == 0]
    pairs = [(a, b) for i, a in enumerate(new) for b in new[i + 1 :]]
    apart = [sum(gene in GENES[:20] for gene in pair) for pair in pairs if pair not in OTHER]
    found = {row["rows"]: row["n"] for row in bench_transfer(runs, replicates=5)["rows"]}
    assert {text: n for text, n in found.items() if text.startswith("two new genes")} == {
        "two new genes, all rows": 2 * len(pairs),
        "two new genes, pair measured elsewhere (replication)": 2 * (len(pairs) - len(apart)),
        "two new genes elsewhere, pair not measured (transfer)": 2 * apart.count(2),
        "two new genes, one of them elsewhere": 2 * apart.count(1),
        "two new genes, neither elsewhere": 2 * apart.count(0),
    }


def test_a_correlation_is_the_mean_over_seeds(tmp_path: Path) -> None:
    runs = [a_run(tmp_path, f"{side}-{seed}-0", 0.1) for side in ("joint", "alone") for seed in range(2)]
    rows = bench_transfer(runs, replicates=5)["rows"]
    first = next(row for row in rows if row["rows"] == "new gene, not elsewhere")
    by_hand = []
    for seed in range(2):
        frame = pd.read_parquet(tmp_path / f"joint-{seed}-0" / "predictions.parquet")
        new = frame.genes.map(lambda text: [gene for gene in text.split(",") if int(gene[1:]) % 5 == 0])
        chosen = new.map(lambda genes: len(genes) == 1 and genes[0] not in GENES[:20])
        by_hand.append(np.corrcoef(frame.value[chosen], frame.pair_screen[chosen])[0, 1])
    assert first["with screens r"] == pytest.approx(np.mean(by_hand))
    assert first["r difference"] == 0


def test_a_split_that_hides_no_gene_compares_pairs_of_known_genes(tmp_path: Path) -> None:
    runs = [
        a_run(tmp_path, f"{side}-{seed}-0", 0.1, hides=False)
        for side in ("joint", "alone")
        for seed in range(2)
    ]
    measured = len(OTHER)
    counts = {row["rows"]: row["n"] for row in bench_transfer(runs, replicates=5)["rows"]}
    assert counts == {
        "no new gene, all rows": 2 * 435,
        "no new gene, pair measured elsewhere (replication)": 2 * measured,
        "no new gene, pair not measured elsewhere": 2 * (435 - measured),
    }


def test_runs_that_do_not_match_are_refused(tmp_path: Path) -> None:
    one = a_run(tmp_path, "joint-0-0", 0.1)
    with pytest.raises(ConfigError, match=r"\[\(0, 0\)\], and of those without \[\]: give both for each"):
        bench_transfer([one])
    with pytest.raises(ConfigError, match="are of one seed and fold"):
        bench_transfer([one, one])
    other = a_run(tmp_path, "alone-0-0", 0.1)
    pd.read_parquet(other / "predictions.parquet")[1:].to_parquet(other / "predictions.parquet")
    with pytest.raises(ConfigError, match="were tested on different test rows: train both on one split"):
        bench_transfer([one, other])


def test_a_list_is_predicted_by_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(a, b) for i, a in enumerate(GENES) for b in GENES[i + 1 :]]
    rows = pd.DataFrame(
        {
            "genes": [",".join(pair) for pair in pairs],
            "kinds": ["absent,reduced" if i % 3 else "reduced,absent" for i in range(len(pairs))],
            "value": np.random.default_rng(3).normal(0, 0.1, len(pairs)),
        }
    )
    truth = dict(zip(zip(rows.genes, rows.kinds, strict=True), rows.value, strict=True))
    frames = {"other": pd.DataFrame({"genes": [",".join(pair) for pair in OTHER]})}
    frames["listed"] = pd.concat([rows, rows[:40]])  # some rows twice

    def load(run: Path) -> SimpleNamespace:
        """Return a predictor of two phenotypes that says half of what is true of a pair, and noise alone."""
        noise = np.random.default_rng(4 + run.name.startswith("alone"))

        def predict(mutants: list[list[str]]) -> np.ndarray:
            parts = [tuple(zip(*(text.split(":") for text in mutant), strict=True)) for mutant in mutants]
            said = [truth[",".join(genes), ",".join(kinds)] for genes, kinds in parts]
            spread = 0.1 if run.name.startswith("joint") else 1.0
            return np.stack([np.zeros(len(said)), np.array(said) / 2 + noise.normal(0, spread, len(said))], 1)

        checkpoint = SimpleNamespace(predict=predict)
        return SimpleNamespace(phenotypes=["epsilon", "strong"], table=lambda x: x, checkpoint=checkpoint)

    monkeypatch.setattr(transfer.wildtype, "load", load)
    monkeypatch.setattr(
        transfer, "load_dataset", lambda name: SimpleNamespace(to_pandas=lambda: frames[name])
    )
    runs = [a_run(tmp_path, f"{side}-0-{fold}", 0.1) for side in ("joint", "alone") for fold in range(2)]
    found = bench_transfer(runs, phenotype="strong", listed="listed", replicates=20)["rows"]
    assert {row["labels"] for row in found} == {"listed"}
    new = [sum(int(gene[1:]) % 5 == fold for gene in pair) for pair in pairs for fold in range(2)]
    every = {row["rows"]: row for row in found}
    assert every["new gene, all rows"]["n"] == new.count(1)
    assert every["two new genes, all rows"]["n"] == new.count(2)
    assert every["new gene, all rows"]["r low"] > 0
    with pytest.raises(ConfigError, match=r"phenotype='tau' is none of .*; known: epsilon, strong"):
        bench_transfer(runs, phenotype="tau", listed="listed")
