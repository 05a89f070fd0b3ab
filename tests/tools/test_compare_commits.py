"""Comparing two commits: the statistics and the command line. No time is asserted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.__main__ import bench_named
from tools import compare_commits
from tools.compare_commits import BENCHES, HELP, SECONDS, arguments, compare, main, table


def test_nine_pairs_are_judged_by_the_second_smallest_and_largest_ratio() -> None:
    ratios = [0.5, 0.98, 0.99, 1.0, 1.02, 1.03, 1.04, 1.06, 3.0]
    order = np.random.default_rng(0).permutation(9)
    old = np.linspace(1, 9, 9)
    found = compare(old.tolist(), (old * np.array(ratios)[order]).tolist())
    assert (found.pairs, found.slower) == (9, False)
    assert (found.median, found.low, found.high) == pytest.approx((1.02, 0.98, 1.06))
    assert found.coverage == pytest.approx(stats.binom.cdf(7, 9, 0.5) - stats.binom.cdf(1, 9, 0.5))
    assert found.coverage == pytest.approx(1 - 20 / 512)


@pytest.mark.parametrize(("pairs", "k"), [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (12, 3), (20, 6)])
def test_the_interval_of_a_median_is_that_of_the_sign_test(pairs: int, k: int) -> None:
    ratios = np.arange(1.0, pairs + 1)
    found = compare([1.0] * pairs, ratios.tolist())
    assert (found.low, found.high) == (ratios[k - 1], ratios[-k])
    inside = stats.binom.cdf(pairs - k, pairs, 0.5) - stats.binom.cdf(k - 1, pairs, 0.5)
    assert found.coverage == pytest.approx(inside)


@pytest.mark.parametrize(
    ("ratios", "slower"),
    [
        ([1.04] * 9, False),  # at most 1.05
        ([1.06] * 9, True),  # surely slower
        ([0.9] * 4 + [1.07] * 5, False),  # the interval holds 1 and stays below 1.15
        ([0.9] * 4 + [1.07] * 2 + [1.2] * 3, True),  # it reaches beyond
        ([0.5] * 9, False),
    ],
)
def test_what_counts_as_slower(ratios: list[float], slower: bool) -> None:
    assert compare([2.0] * 9, [2 * ratio for ratio in ratios]).slower is slower


def test_the_command_line_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    given = arguments(["main", "--only", "step,loader", "--pairs", "3", "--json"])
    assert (given.old, given.only, given.pairs, given.json) == ("main", ["step", "loader"], 3, True)
    assert arguments(["main"]).only == [*BENCHES, HELP]
    assert arguments(["main", "--only=--help"]).only == [HELP]
    for words, message in (
        ([], "name the commit"),
        (["main", "--only", "stpe"], "--only names 'stpe'"),
        (["main", "--only", ","], "--only names nothing"),
        (["main", "--pairs", "0"], "--pairs=0"),
    ):
        with pytest.raises(SystemExit):
            arguments(words)
        assert message in capsys.readouterr().err


def test_the_result_is_a_table_or_json_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    @contextmanager
    def checked_out(commit: str) -> Iterator[Path]:
        assert commit == "OLD"
        yield tmp_path

    taken = {"step": {"old": [1.0] * 9, "new": [2.0] * 9}, HELP: {"old": [1.0] * 9, "new": [0.5] * 9}}
    monkeypatch.setattr(compare_commits, "checked_out", checked_out)
    monkeypatch.setattr(compare_commits, "measure", lambda tree, names, pairs: {n: taken[n] for n in names})
    monkeypatch.setattr("sys.argv", ["compare_commits.py", "OLD", f"--only=step,{HELP}"])
    assert main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["step", "2.000", "2.000", "to", "2.000", "slower"]
    assert lines[2].split() == [HELP, "0.500", "0.500", "to", "0.500"]
    monkeypatch.setattr("sys.argv", ["compare_commits.py", "OLD", f"--only={HELP}", "--json"])
    assert main() == 0
    record = json.loads(capsys.readouterr().out)
    assert record["old"] == "OLD"
    assert record["benches"][HELP]["median"] == 0.5
    assert record["benches"][HELP]["seconds"] == taken[HELP]


def test_a_commit_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], *, check: bool) -> None:
        raise subprocess.CalledProcessError(128, words)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("sys.argv", ["compare_commits.py", "no-such-commit"])
    with pytest.raises(SystemExit, match=r"compare_commits: git .* no-such-commit failed"):
        main()


@pytest.mark.parametrize("name", BENCHES)
def test_the_compared_numbers_are_in_the_reports(name: str) -> None:
    tiny = {
        "attention": {"nodes": 40, "edges": 300},
        "step": {
            "nodes": 60,
            "edges": 300,
            "relations": 2,
            "width": 8,
            "layers": 1,
            "heads": 4,
            "batch_size": 4,
        },
        "loader": {"mutants": 100},
        "evidence": {"genes": 60, "measured": 200, "queries": 20},
        "screen": {"nodes": 60, "relations": 2, "edges": 200, "candidates": 8, "width": 8, "heads": 4},
    }[name]
    bench = bench_named(name)
    with pytest.MonkeyPatch.context() as patch:
        if name in ("attention", "step"):
            patch.setattr(f"benchmarks.{name}.peak_in_fresh_process", lambda *arguments: 0.0)
        report = bench(**(BENCHES[name] | tiny))
    assert SECONDS[name](report) > 0


def test_intervals_are_printed_with_their_coverage() -> None:
    found = compare([1.0] * 9, [1.0] * 9)
    assert table({"loader": found}).splitlines()[-1] == "medians of 9 pairs in one thread; intervals of 96%"
