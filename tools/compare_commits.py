"""Speed of this work tree against an older commit: `python tools/compare_commits.py OLD`.

OLD is checked out beside (a git worktree in a temporary folder), and both run the same small benches in turn,
in one thread. Printed is the median of the ratios new / old over all pairs, with an interval. A bench counts
as slower if its median ratio is above 1.05, unless the interval holds 1 and stays below 1.15. The exit code
is 1 if any is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from math import comb
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HELP = "--help"
# Sizes at which a bench takes one to two seconds on one core: nine pairs of all end in about ten minutes.
BENCHES: dict[str, dict[str, Any]] = {
    "attention": {"nodes": 1500, "edges": 200_000, "repeats": 3, "reference": False},
    "step": {"nodes": 600, "edges": 60_000, "layers": 2, "batch_size": 256, "repeats": 2, "reference": False},
    "loader": {"mutants": 600_000, "repeats": 9},
    "evidence": {"genes": 1000, "measured": 20_000, "queries": 4000, "repeats": 3},
    "screen": {
        "nodes": 600,
        "edges": 20_000,
        "candidates": 90,
        "pieces": 2,
        "direct": "sum,product",
        "reference": False,
    },
}
SCREENED = ("own reads", "product", "sum")
"""Forms of a screen: own reads took the place of a product of matrices after b9a0e1d."""
SECONDS: dict[str, Callable[[dict[str, Any]], float]] = {
    "attention": lambda report: report["seconds"]["regularised"],
    "step": lambda report: report["seconds_per_step"]["priors"],
    "loader": lambda report: 1 / report["mutants_per_second"]["sliced"],
    "evidence": lambda report: 1 / report["queries_per_second"]["whole tokens"],
    "screen": lambda report: sum(
        1 / found["mutants_per_second"] for name, found in report.items() if name in SCREENED
    ),
}
"""What is compared of each report: seconds, of a step or per item."""
SLOWER, TOLERATED = 1.05, 1.15
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """Ratios of one bench, new / old.

    Attributes
    ----------
    pairs : int
        Number of ratios.
    median, low, high : float
        Their median, and its interval.
    coverage : float
        Probability that the interval holds the true median, if pairs are independent.
    slower : bool
        Whether the new commit counts as slower.
    """

    pairs: int
    median: float
    low: float
    high: float
    coverage: float
    slower: bool


def compare(old: Sequence[float], new: Sequence[float]) -> Comparison:
    """Return how the seconds of pairs differ.

    The interval lies between the k-th smallest and the k-th largest ratio. It misses the true median where
    fewer than k ratios lie on one side of it, which for n pairs has the probability 2 Σ_{i<k} C(n, i) / 2ⁿ:
    no assumption about the noise of a shared machine enters. k is the largest with which 95 % is reached;
    of nine pairs the second (96 %), and of fewer than six the first.
    """
    ratios = sorted(b / a for a, b in zip(old, new, strict=True))
    n = len(ratios)

    def coverage(k: int) -> float:
        return 1 - 2 * sum(comb(n, i) for i in range(k)) / 2.0**n

    k = max((k for k in range(1, (n + 1) // 2 + 1) if coverage(k) >= CONFIDENCE), default=1)
    median, low, high = statistics.median(ratios), ratios[k - 1], ratios[n - k]
    slower = median > SLOWER and not (low <= 1 <= high < TOLERATED)
    return Comparison(n, median, low, high, coverage(k), slower)


# ------------------------------------------------------------------------------------------------- one side


@dataclass
class Side:
    """One of the two commits: a folder with its files, and a process that has its package loaded."""

    tree: Path
    process: subprocess.Popen[str]

    def seconds(self, name: str) -> float:
        """Run a bench in the process, and return its seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("seconds "):  # other lines are the bench's own output
                return float(line.split()[1])
        raise SystemExit(f"the bench {name} failed in {self.tree}: its error is above")


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which a tree's own files are imported, in one thread."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    # PYTHONPATH comes before an installed package; with a safe path, this script's folder does not.
    path = os.pathsep.join([str(tree / "src"), str(tree)])
    return {**os.environ, **threads, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


@contextmanager
def side(tree: Path) -> Iterator[Side]:
    """Start a process of a tree, and end it."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--serve", str(tree)],
        cwd=tree,
        env=environment(tree),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Side(tree, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def serve(tree: Path) -> None:
    """Run benches by their names on standard input, and print their seconds."""
    import torch

    import wildtype

    if not Path(wildtype.__file__).is_relative_to(tree):
        raise SystemExit(f"{wildtype.__file__} was imported, which is not in {tree}")
    torch.set_num_threads(1)
    for line in sys.stdin:  # ends when the comparing process closes the pipe
        print("seconds", bench_seconds(line.strip()), flush=True)


def bench_seconds(name: str) -> float:
    """Run a bench of the imported tree, and return its seconds."""
    try:
        module = import_module(f"benchmarks.{name}")
    except ModuleNotFoundError:  # before benches stood outside the package
        module = import_module(f"wildtype.profiling.benches.{name}")
    if hasattr(module, "peak_in_fresh_process"):
        # A second process for the peak would take longer than the bench and is not compared.
        vars(module)["peak_in_fresh_process"] = lambda *arguments: float("nan")
    report = getattr(module, f"bench_{name}")(**BENCHES[name])
    return SECONDS[name](report)


def help_seconds(tree: Path) -> float:
    """Return the seconds of ``wildtype --help``: the fastest of three, since starts are short and noisy."""
    code = "import sys; sys.argv = ['wildtype', '--help']; from wildtype.cli.main import main; main()"
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tree,
            env=environment(tree),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# ------------------------------------------------------------------------------------------------ both sides


def measure(old: Path, names: Sequence[str], pairs: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds of both trees by bench, one pair after the other."""
    taken: dict[str, dict[str, list[float]]] = {name: {"old": [], "new": []} for name in names}
    trees = {"old": old, "new": ROOT}
    for pair in range(pairs + 1):
        with ExitStack() as processes:
            # New processes for every pair: layout of memory and hash seeds favour one side for as long as a
            # process lives. Within a pair the two take turns bench by bench, so that both meet the same load.
            sides = {name: processes.enter_context(side(tree)) for name, tree in trees.items()}
            for name in names:
                order = ("old", "new") if pair % 2 else ("new", "old")
                for which in order:
                    here = help_seconds(trees[which]) if name == HELP else sides[which].seconds(name)
                    if pair:  # the first pair compiles kernels and writes .pyc files
                        taken[name][which].append(here)
        print(f"pair {pair} of {pairs}" if pair else "warm-up", file=sys.stderr)
    return taken


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out in a temporary folder, and remove it."""
    git = ["git", "-C", str(ROOT)]
    # A comparison that the system ends also removes its checkout: the exit unwinds this context.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "old"
            subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True)
            try:
                yield tree.resolve()
            finally:
                subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def table(found: dict[str, Comparison]) -> str:
    """Return the comparisons as lines of text."""
    lines = [f"{'':10}  {'new / old':>9}  {'interval':>14}"]
    for name, one in found.items():
        interval = f"{one.low:.3f} to {one.high:.3f}"
        lines.append(
            f"{name:10}  {one.median:9.3f}  {interval:>14}  {'slower' if one.slower else ''}".rstrip()
        )
    first = next(iter(found.values()))
    lines.append(f"medians of {first.pairs} pairs in one thread; intervals of {first.coverage:.0%}")
    return "\n".join(lines)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    every = (*BENCHES, HELP)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("old", metavar="OLD", nargs="?", help="a commit, tag or branch to compare with")
    parser.add_argument(
        "--only", default=",".join(every), metavar="NAMES", help=f"some, with commas, of {', '.join(every)}"
    )
    parser.add_argument("--pairs", type=int, default=9, help="timed pairs (default 9)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    # argparse takes a value that looks like an option only behind "=": --only=--help
    given = parser.parse_args(words)
    given.only = [name for name in given.only.split(",") if name]
    if unknown := [name for name in given.only if name not in every]:
        parser.error(f"--only names {unknown[0]!r}, which is none of {', '.join(every)}")
    if not given.only:
        parser.error(f"--only names nothing: give some of {', '.join(every)}")
    if given.pairs < 1:
        parser.error(f"--pairs={given.pairs}: give 1 or more")
    if given.old is None and given.serve is None:
        parser.error("name the commit to compare with, as in compare_commits.py main")
    return given


def main() -> int:
    """Compare, print, and return the exit code."""
    given = arguments()
    if given.serve is not None:
        serve(given.serve)
        return 0
    try:
        with checked_out(given.old) as old:
            taken = measure(old, given.only, given.pairs)
    except subprocess.CalledProcessError as error:
        sys.exit(f"compare_commits: {' '.join(error.cmd)} failed; its error is above")
    found = {name: compare(seconds["old"], seconds["new"]) for name, seconds in taken.items()}
    if given.json:
        record = {name: asdict(one) | {"seconds": taken[name]} for name, one in found.items()}
        print(json.dumps({"old": given.old, "benches": record}, indent=2))
    else:
        print(table(found))
    return int(any(one.slower for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
