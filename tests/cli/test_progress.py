from __future__ import annotations

import io

import pytest
from rich.console import Console

from wildtype.cli.progress import ScreenProgress, duration


def lines_of(steps: list[tuple[float, int]], count: int) -> list[str]:
    """Return what a screen prints into a pipe whose pieces are done at these seconds."""
    out = io.StringIO()
    now = [0.0]
    with ScreenProgress(Console(file=out), clock=lambda: now[0]) as report:
        report(0, count)
        for second, done in steps:
            now[0] = second
            report(done, count)
    return out.getvalue().splitlines()


def test_a_piped_screen_shows_its_size_its_time_and_sparse_progress() -> None:
    lines = lines_of([(10.0 * i, 1000 * i) for i in range(1, 61)], 60_000)
    assert lines[0] == "60,000 mutants in the design"
    assert lines[1] == "about 10 min at 100 mutants/s"
    assert lines[2] == "4,000 of 60,000 mutants (7%), about 9 min left"
    # 600 seconds of work: lines after 20, 30 (of 15 and 30 s), then 60, 120 and 240 s.
    assert len(lines) == 7
    assert "shorter" not in " ".join(lines)


def test_a_screen_of_hours_says_how_it_could_be_shorter() -> None:
    lines = lines_of([(100.0, 1000), (200.0, 2000)], 100_000)
    assert lines[1] == "about 2.7 h at 10 mutants/s"
    assert "--among" in lines[2]
    assert "--processes" in lines[2]


def test_a_resumed_screen_does_not_count_what_was_done_before() -> None:
    lines = lines_of([(0.0, 50_000), (10.0, 51_000)], 60_000)
    assert lines[1] == "about 90 s at 100 mutants/s" or lines[1] == "about 2 min at 100 mutants/s"


def test_a_short_screen_shows_its_size_only() -> None:
    assert lines_of([(1.0, 1000), (2.0, 2000)], 2000) == ["2,000 mutants in the design"]
    assert lines_of([(0.0, 1000), (0.0, 2000)], 2000) == ["2,000 mutants in the design"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (40, "40 s"), (95, "2 min"), (720, "12 min"), (12_600, "3.5 h")]
)
def test_durations_are_in_the_unit_that_people_use(seconds: float, text: str) -> None:
    assert duration(seconds) == text
