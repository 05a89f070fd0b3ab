"""The bench of masked layers at toy size: its report is complete, JSON-able, and shows equal results."""

import json

from typer.testing import CliRunner

from benchmarks.__main__ import command_line
from benchmarks.masked_gin import bench_masked_gin

SMALL = {
    "nodes": 40,
    "relations": 3,
    "edges": 600,
    "width": 4,
    "mlp_layers": 2,
    "batch_size": 3,
    "repeats": 2,
}


def test_report_of_a_small_layer():
    report = json.loads(json.dumps(bench_masked_gin(**SMALL)))
    assert report["problem"] == SMALL | {"seed": 0}
    assert report["mutants_per_step"] == {"shared": 3, "first": 3, "product": 3, "MLP": 3, "replicated": 3}
    assert set(report["seconds_per_mutant"]) == set(report["mutants_per_step"])
    assert all(seconds > 0 for seconds in report["seconds_per_mutant"].values())
    assert set(report["ratios"]) == {"replicated_to_shared", "replicated_to_first"}
    assert set(report["difference"]) == {"shared", "first"}
    for difference in report["difference"].values():
        assert set(difference) == {"outputs, relative", "gradients, relative"}
        assert all(value < 1e-5 for value in difference.values())


def test_the_replicated_kind_can_be_left_out_from_the_command_line():
    words = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    result = CliRunner().invoke(command_line(), ["masked-gin", *words, "--no-reference", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert set(report["seconds_per_mutant"]) == {"shared", "first", "product", "MLP"}
    assert "difference" not in report
