"""Ten small runs whose predictions and losses moves of code keep to the bit: one thread, deterministic.

They go through the public interface alone, so that they outlive moves of code: only names of settings,
columns and terms of the loss change here. `deterministic_runs.json` holds what they give on a processor with
AVX-512, and `deterministic_runs_avx2.json` on one without, equal to 1e-4: for each array the sha256 of
its float32 bytes, its length and a few of its values, and the machine that they were made on. An array that
is renamed is renamed in both; its sha256 stays. Both were made anew when dropout came to draw four entries
at a time and LightGBM to grow all trees; the one without AVX-512 on a processor whose libraries were told not
to use it (`ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell
NUMBA_CPU_NAME=haswell`, and `NPY_DISABLE_CPU_FEATURES`): at the commit before, this gave
what was stored, to 1e-4. When tokens came to be pooled without gaps, the last bits of predictions changed
and no loss: the file of AVX-512 was made anew, and the other still holds, to 1e-4. When measured values came
to be those of the same kinds of perturbation, four arrays of `many phenotypes` changed, in both files.

Other processors and versions of torch sum in other orders, and training, trees and ranked lists make other
figures of that. To compare two commits on another machine, write what each of them gives there, and compare
the files:

    python -m tests.inventory.deterministic_runs > runs.json
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

import wildtype as wt
from tests.tiny import mixed_dataset, tiny_dataset

Arrays = dict[str, np.ndarray]
SETS = [["G001", "G002"], ["G003", "G004", "G005"], ["G001", "G023:reduced"], ["G007"]]
SUMS = "tokens pooled without gaps"
"""The last change of the order of sums. Runs that were stored before it are compared to 1e-4, not in bits."""
SHOWN = 6
"""Values of an array that are stored, evenly spread over it."""
BASELINES = [
    "mean",
    "additive_ridge",
    "pair_ridge",
    "feature_ridge",
    "embedding_mlp",
    "low_rank_bilinear",
    "boosting",
    "boosting_propagation",
]
CLOSED_FORMS = ["tau_zero", "min_pairs"]
SMALL = {"model__width": 16, "model__heads": 4, "model__layers": 1, "model__head__heads": 2}
WITHOUT_EVIDENCE = {"model__evidence__tokens": 0, "model__prior__weight": 0}
QUICK = {
    "training__epochs": 2,
    "training__batch_size": 64,
    "training__deterministic": True,
    "baselines": [],
    "training__threads": 1,
    "run__progress": False,
    "run__replicates": 20,
}
Fit = Callable[..., Any]


def losses(run: Any) -> Arrays:
    """Return the curves of a run: every term of the loss, and the score on validation rows."""
    curves = run.learning
    found = {f"loss {name}": values for name, values in curves.terms.items()}
    return found | {"loss": curves.total, "validation score": curves.score, "validation error": curves.error}


def predicted(frame: pd.DataFrame) -> Arrays:
    """Return the columns of numbers of a table of predictions."""
    numbers = frame.select_dtypes(["number", "bool"])
    return {f"predicted {name}": values.to_numpy(np.float64) for name, values in numbers.items()}


def tables(run: Any) -> Arrays:
    """Return correlation and squared error of every model in the tables of a run."""
    return {
        f"{name} of {phenotype}": np.array([getattr(score, name).value for score in table.scores])
        for phenotype, table in run.comparisons.items()
        for name in ("pearson", "mse")
    }


def whole(run: Any, sets: Sequence[Sequence[str]] = SETS, **how: Any) -> Arrays:
    """Return losses, tables and predictions of a run that was read again from its folder."""
    return losses(run) | tables(run) | predicted(wt.load(run.path).predict(sets, **how))


def plain(fit: Fit) -> Arrays:
    """The cell transformer without evidence, trees or priors."""
    return whole(fit(dataset=tiny_dataset(), **SMALL, **WITHOUT_EVIDENCE))


def everything(fit: Fit) -> Arrays:
    """The cell transformer with priors, evidence one and two edits away, trees, all summaries of a set."""
    run = fit(
        dataset=tiny_dataset(),
        **SMALL,
        model__evidence__two=4,
        model__trees__bags=1,
        model__trees__iterations=20,
        model__head__direct=["sum", "product", "partners"],
    )
    return whole(run)


def in_silico(fit: Fit) -> Arrays:
    """A few rows of the in-silico organism with the settings that suit it: metabolism, equivalents, trees."""
    run = fit(dataset="ecoli-core-growth", data__rows=600, model__trees__draws=1)
    return whole(run, [["b0902", "b1761"], ["b0116"], ["b0720", "b1136", "b3236"]])


def experts(fit: Fit) -> Arrays:
    """Members that are experts for genes seen and unseen, on a split with unseen genes."""
    run = fit(
        dataset=tiny_dataset(),
        **SMALL,
        split__name="one-unseen",
        split__genes=4,
        training__members=3,
        model__evidence__experts=["seen", "one", "none"],
        training__epochs=1,
    )
    return whole(run)


def many_phenotypes(fit: Fit) -> Arrays:
    """A number, a call, a vector of traits and a number per gene in one run."""
    run = fit(
        dataset=mixed_dataset(),
        **SMALL,
        model__head__rank=3,
        training__weighting="sd",
        training__balance="heads",
    )
    per_gene = wt.load(run.path).predict_profiles(SETS)
    values = per_gene.drop(columns="genes").to_numpy(np.float64)
    return whole(run) | {"predicted per gene": values.ravel()}


def dango(fit: Fit) -> Arrays:
    """DANGO."""
    return whole(fit(model="dango", dataset=tiny_dataset(), model__width=16, model__transition=1))


def difference_gnn(fit: Fit) -> Arrays:
    """The difference GNN."""
    settings = {"model__width": 8, "model__layers": 2, "model__gin_layers": 1}
    return whole(fit(model="difference_gnn", dataset=tiny_dataset(), **settings))


def baselines(fit: Fit) -> Arrays:
    """Every baseline on its own, by its predictions of the test rows."""
    run = fit(dataset=tiny_dataset(), **SMALL, **WITHOUT_EVIDENCE, training__epochs=1, baselines=BASELINES)
    rows = run.predictions
    return tables(run) | {f"predicted by {name}": rows[name].to_numpy(np.float64) for name in BASELINES}


def screen(fit: Fit) -> Arrays:
    """The best pairs of all genes and the best triples of some, as sets and values, with intervals."""
    model = wt.load(fit(dataset=tiny_dataset(), **SMALL, model__head__summary="own_reads").path)
    among = [f"G{i:03d}" for i in range(12)]
    found: Arrays = {}
    for name, frame in {
        "pairs": model.screen(2, top=20, interval=0.9, include=["linked"]),
        "triples": model.screen(3, among, top=20, include=["linked"]),
        "crossed": model.screen(queries=[["G001", "G002"]], top=20, unmeasured=True, include=["linked"]),
    }.items():
        found |= {f"{name}, {column}": values for column, values in predicted(frame).items()}
        found[f"{name}, sets"] = numbers(frame["genes"])
    return found


def triples_and_intervals(fit: Fit) -> Arrays:
    """An ensemble on triples beside their closed forms, with conformal intervals and the members' spread."""
    run = fit(
        dataset="ecoli-core-triples",
        split__name="random",
        data__rows=900,
        training__members=2,
        model__trees__bags=0,
        model__evidence__equivalents=False,
        baselines=CLOSED_FORMS,
    )
    rows = run.predictions
    sets = rows["genes"].str.split(",").tolist()[:12]
    forms = {f"closed form {name}": rows[name].to_numpy(np.float64) for name in CLOSED_FORMS}
    return whole(run, sets, interval=0.9) | forms


RUNS: dict[str, Callable[[Fit], Arrays]] = {
    "cell transformer, plain": plain,
    "cell transformer, everything": everything,
    "in-silico organism": in_silico,
    "experts": experts,
    "many phenotypes": many_phenotypes,
    "dango": dango,
    "difference GNN": difference_gnn,
    "baselines": baselines,
    "screen": screen,
    "triples and intervals": triples_and_intervals,
}
"""The ten runs by name."""


def numbers(texts: pd.Series) -> np.ndarray:
    """Return a number for every text, equal for equal texts only, and exact in float32."""
    digests = (hashlib.sha256(text.encode()).digest()[:3] for text in texts)
    return np.array([int.from_bytes(digest, "big") for digest in digests], np.float64)


def described(values: np.ndarray) -> dict[str, Any]:
    """Return the sha256 of an array's float32 bytes, its length, and a few of its values."""
    exact = np.ascontiguousarray(values, dtype="<f4").ravel()
    exact = np.where(np.isnan(exact), np.float32("nan"), exact)  # one pattern of bits for what is no number
    at = np.unique(np.linspace(0, max(exact.size - 1, 0), SHOWN).astype(int)) if exact.size else []
    shown = [None if np.isnan(exact[i]) else float(f"{exact[i]:.7g}") for i in at]
    return {"sha256": hashlib.sha256(exact.tobytes()).hexdigest(), "length": exact.size, "shown": shown}


def machine() -> dict[str, str]:
    """Return what the last bits of a sum depend on."""
    processor, info = platform.machine(), Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
        processor = ", ".join(sorted(names)) or processor
    return {
        "processor": processor,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "sums": SUMS,
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any], *, exact: bool) -> list[str]:
    """Return one sentence for every array that changed: in its bits, or in the values that are shown."""
    found = [
        f"{name!r} is not there: an array that was renamed is renamed in the JSON too"
        for name in before
        if name not in now
    ]
    found += [f"{name!r} is new" for name in now if name not in before]
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        same = old["length"] == new["length"] and (
            old["sha256"] == new["sha256"] if exact else close(old, new)
        )
        if not same:
            found.append(
                f"{name!r} was {old['shown']} ({old['length']}) and is {new['shown']} ({new['length']})"
            )
    return sorted(found)


def close(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the values shown of two arrays agree within 1e-4, of the value where it is above 1."""
    a, b = (np.array(one["shown"], np.float64) for one in (old, new))  # None becomes NaN
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and the libraries below numpy and scikit-learn use one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def result(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Make one of the runs in a new folder and return what it gave, by name of the array."""

    def fit(**settings: Any) -> Any:
        return wt.fit(**{**QUICK, "run__folder": folder / "run", **settings})

    with one_thread():
        return {key: described(values) for key, values in sorted(RUNS[name](fit).items())}


def written(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return results as JSON with one array per line."""
    parts = [f' "machine": {json.dumps(machine())}']
    for name, arrays in results.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in arrays.items())
        parts.append(f' "{name}": {{\n{lines}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as base:
        os.environ["WILDTYPE_CACHE"] = f"{base}/cache"
        results = {name: result(name, Path(base) / str(i)) for i, name in enumerate(RUNS)}
    print(written(results), end="")
