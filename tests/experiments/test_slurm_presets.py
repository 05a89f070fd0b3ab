"""Presets: what is read, what is left to its default, and what is refused with its line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from wildtype.errors import ConfigError
from wildtype.experiments.slurm_presets import Preset, minutes, read_preset


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("90", 90),
        ("90:01", 91),
        ("4:00:00", 240),
        ("0:00:01", 1),
        ("2-12", 3600),
        ("1-0:30", 1470),
        ("1-02:30:00", 1590),
        ("36:00:00", 2160),
    ],
)
def test_times(time: str, expected: int, tmp_path: Path) -> None:
    assert minutes(time) == expected
    (tmp_path / "p.yaml").write_text(
        f"time: {time}\n"
    )  # no quotes: YAML reads some as numbers to the base 60
    assert minutes(read_preset(tmp_path / "p.yaml").time) == expected


@pytest.mark.parametrize("time", ["", "0", "00:00", "-5", "4h", "1:2:3:4", "1-", "1e3", " 5", "UNLIMITED"])
def test_bad_times(time: str) -> None:
    with pytest.raises(ConfigError, match=r"time is .*2-12:00:00"):
        minutes(time)


def test_every_field_is_a_key_and_what_is_left_out_keeps_its_default(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "partition: gpu\naccount: on\nqos: '1'\nconstraint:\nnodes: 2\ngpus: 0\ngpu_type: a100\ncpus: 4\n"
        "memory_gib: 0\ntime: 1:30:00\nrequeue: 90\nat_once: 7\nmail: ~\nmail_events: [FAIL]\n"
        "extra:\n  - --exclusive\n"
        "setup:\n  - |\n    module load a\n    module load b\n"
        "prefix: apptainer exec i.sif\nprogram: wildtype\n"
    )
    preset = read_preset(path)
    assert dataclasses.asdict(preset) == {
        "partition": "gpu",
        "account": "on",
        "qos": "1",
        "constraint": "",
        "nodes": 2,
        "gpus": 0,
        "gpu_type": "a100",
        "cpus": 4,
        "memory_gib": 0,
        "time": "1:30:00",
        "requeue": 90,
        "at_once": 7,
        "mail": "",
        "mail_events": ("FAIL",),
        "extra": ("--exclusive",),
        "setup": ("module load a\nmodule load b\n",),
        "prefix": "apptainer exec i.sif",
        "program": "wildtype",
    }
    for text in ("", "# nothing\n", "{}"):
        path.write_text(text)
        assert read_preset(path) == Preset()


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("gpus: 1\npartitoin: gpu\n", 2, "'partitoin' is not a key of a preset; did you mean partition?"),
        ("xyz: 1\n", 1, "known: partition, account"),
        ("gpus: 1\n\ngpus: 2\n", 3, "gpus is repeated"),
        ("gpus: many\n", 1, "gpus is 'many': a whole number"),
        ("gpus: -1\n", 1, "gpus is -1, which is less than 0"),
        ("nodes: 0\n", 1, "nodes is 0"),
        ("cpus: 2.5\n", 1, "cpus is '2.5'"),
        ("partition: [a, b]\n", 1, "partition takes one value"),
        ("setup: module load x\n", 1, "setup takes a list"),
        ("setup: [[a]]\n", 1, "setup takes a list"),
        ("time: soon\n", 1, "time is 'soon'"),
        ("mail: me\nmail_events: [end]\n", 2, "'end' is unknown; did you mean END?"),
        ('partition: "a\\nrm -rf x"\n', 1, "partition is 'a\\nrm -rf x': write one line"),
        ("extra: [exclusive]\n", 1, "'exclusive' is not written as --name"),
        ("extra: [--time=5]\n", 1, "--time follows from the preset's key time"),
        ("extra: [--gpus=5]\n", 1, "--gpus follows from the preset's key gpus"),
        ("extra: [--output=x]\n", 1, "--output is not for a preset to set"),
        ("gpu_type: a100:2\n", 1, "gpu_type is 'a100:2'"),
        ("prefix: apptainer exec 'x\n", 1, "the prefix"),
        ("gpus: 1\n- a\n", 2, "the preset is damaged: expected <block end>"),
        ("gpus: 1\ncpus: \x01\n", 2, "the preset is damaged: unacceptable character"),
        ("[" * 600, 1, "the preset is damaged"),
        ("- gpus\n", 1, "lines of `key: value`"),
        ("gpus: *there\n", 1, "the preset is damaged"),
        ("<<: {gpus: 1}\n", 1, "'<<' is not a key"),
        ("? [a]\n: b\n", 1, "is not a key"),
    ],
)
def test_what_is_wrong_with_a_preset_is_said_with_its_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_preset(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


def test_a_preset_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"mail: \xe9\n")
    for path, says in {"none.yaml": "No such file", ".": "Is a directory", "latin.yaml": "not UTF-8"}.items():
        with pytest.raises(ConfigError, match=f"cannot read the preset .*{says}"):
            read_preset(tmp_path / path)
