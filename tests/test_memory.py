"""Memory of the process: what malloc keeps of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wildtype.memory import SET_BY_USER, resident_mib

COUNT = """
import resource
from wildtype.memory import keep_freed_memory
{first}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
for i in range(12):
    block = b"x" * (40 * 2**20)
    del block
print(faults() - before)
"""


def page_faults(first: str, **variables: str) -> int:
    """Return how many pages the system hands out to a process that frees 40 MiB twelve times."""
    there = {name: value for name, value in os.environ.items() if name not in SET_BY_USER}
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(first=first)],
        env={**there, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc has mallopt")
def test_what_one_batch_frees_is_kept_for_the_next() -> None:
    kept, given_back = page_faults("keep_freed_memory()"), page_faults("")
    assert kept * 4 < given_back
    # A user's choice stays.
    chosen = page_faults("keep_freed_memory()", MALLOC_MMAP_THRESHOLD_="1000000")
    assert chosen * 2 > given_back


def test_resident_memory_grows_with_what_is_held() -> None:
    before = resident_mib()
    held = b"x" * (64 * 2**20)
    assert resident_mib() - before > 32
    assert len(held) == 64 * 2**20
