from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch

from wildtype.memory import release_memory
from wildtype.profiling.machine import (
    CLEAR,
    MIB,
    PeakMemory,
    available_device_mib,
    available_memory_mib,
    free_disk,
    machine,
    take_turns,
)


def test_peak_sees_what_was_freed_again() -> None:
    # Of what earlier tests freed, the allocator may keep enough for the block: nothing would rise.
    release_memory()
    with PeakMemory() as memory:
        block = np.ones(64 * 2**20 // 8)
        del block
    if not memory.exact:
        pytest.skip(f"{CLEAR} cannot be written here: the peak is that of the whole process")
    assert 60 < memory.peak - memory.before < 200
    with PeakMemory() as after:
        pass
    assert after.peak - after.before < 30


def test_a_warm_up_is_not_counted_and_runs_take_turns() -> None:
    calls: list[str] = []
    runs = {name: (lambda name=name: calls.append(name)) for name in ("a", "b")}
    found = take_turns(runs, 2, summary=lambda seconds: float(len(seconds)))
    assert found == {"a": 2.0, "b": 2.0}
    assert calls == ["a", "b"] * 3


def test_the_clock_starts_and_stops_when_the_accelerator_is_done() -> None:
    order: list[str] = []
    take_turns({"x": lambda: order.append("run")}, 1, synchronise=lambda: order.append("wait"))
    assert order == ["wait", "run", "wait"] * 2


def test_the_machine_is_described() -> None:
    found = machine()
    assert found["memory_gib"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    assert found["threads"] == torch.get_num_threads()
    assert found["processor"]


def test_a_folder_that_is_not_there_yet_has_the_disk_of_its_parent(tmp_path: Path) -> None:
    asked = []

    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=123)

    assert free_disk(tmp_path / "runs/new", usage=usage) == 123
    assert asked == [tmp_path]
    assert free_disk(tmp_path) > 0


def system(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_memory_is_what_the_machine_or_any_control_group_leaves(tmp_path: Path) -> None:
    kept = {"held_mib": 7.0, "free_mib": 2000.0}
    assert available_memory_mib(root=tmp_path, **kept) == 2000 + 7
    machine = psutil.virtual_memory().total / MIB
    assert 7 < available_memory_mib(root=tmp_path, held_mib=7.0) <= machine + 7
    two = system(tmp_path, proc__self__cgroup="0::/slurm/job\n")
    group = two / "sys/fs/cgroup/slurm"
    (group / "job").mkdir(parents=True)
    for folder, limit in ((group, f"{900 * MIB}\n"), (group / "job", "max\n")):
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text(f"{500 * MIB}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {100 * MIB}\n")
    assert available_memory_mib(root=two, **kept) == 900 - 500 + 100 + 7  # the job's parent is the limit
    (group / "job/memory.max").write_text(f"{520 * MIB}\n")
    assert available_memory_mib(root=two, **kept) == 520 - 500 + 100 + 7
    (group / "memory.max").write_text(f"{300 * MIB}\n")
    assert available_memory_mib(root=two, **kept) == 7  # above its limit: nothing is left
    assert available_memory_mib(root=two) > 7  # this process holds more


def test_the_older_control_groups_are_read_and_a_host_path_means_the_top(tmp_path: Path) -> None:
    system(tmp_path, proc__self__cgroup="5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n")
    top = tmp_path / "sys/fs/cgroup/memory"
    top.mkdir(parents=True)
    (top / "memory.limit_in_bytes").write_text(f"{800 * MIB}")
    (top / "memory.usage_in_bytes").write_text(f"{500 * MIB}")
    (top / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {50 * MIB}\n")
    assert available_memory_mib(root=tmp_path, free_mib=2000.0, held_mib=0.0) == 350


def test_a_gpu_gives_what_is_free_and_what_torch_holds_already(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (300 * MIB, 900 * MIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 40 * MIB)
    assert available_device_mib("cuda") == 340.0
