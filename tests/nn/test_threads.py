"""Work in several threads: every piece once, settings restored, errors raised."""

from collections.abc import Iterator
from threading import Event, get_ident

import pytest
import torch

from wildtype.nn.threads import each, loops, shares


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_every_piece_is_done_once_and_settings_hold():
    done: list[int] = []
    each(50, done.append)
    assert sorted(done) == list(range(50))
    seen: list[tuple[bool, int]] = []
    with torch.no_grad():
        each(4, lambda i: seen.append((torch.is_grad_enabled(), torch.get_num_threads())))
    assert seen == [(False, 1)] * 4
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_loops_do_every_piece_once_and_leave_torch_its_threads(count):
    done: list[int] = []
    loops(count, done.append)
    assert sorted(done) == list(range(count))
    assert torch.get_num_threads() == 3


def test_shares_cover_everything_in_ranges_that_depend_on_numbers_alone():
    for count, expected in [(0, 1), (2, 1), (3, 3), (10, 3)]:
        ranges: list[tuple[int, int]] = []
        threads: set[int] = set()

        def note(begin: int, end: int, ranges=ranges, threads=threads) -> None:
            ranges.append((begin, end))
            threads.add(torch.get_num_threads())

        shares(count, note)
        ends = sorted(ranges)
        assert len(ends) == expected
        assert [begin for begin, _ in ends] == [0, *(end for _, end in ends[:-1])]
        assert ends[-1][1] == count
        assert threads == ({3} if expected == 1 else {1})
    ranges = []
    shares(10, lambda *r: ranges.append(r), together=False)
    assert ranges == [(0, 10)]


@pytest.mark.parametrize("run", [each, loops])
def test_nothing_goes_on_after_an_error(run):
    begun, failed = [], Event()

    def work(i: int) -> None:
        begun.append(i)
        if i == 0:
            failed.set()
            raise ValueError("piece 0")
        assert failed.wait(10)

    with pytest.raises(ValueError, match="piece 0"):
        run(1000, work)
    after = len(begun)
    run(3, lambda i: None)  # whoever still worked would have come to it by now
    assert len(begun) == after


@pytest.mark.parametrize("run", [each, loops])
def test_an_error_in_another_thread_is_raised(run):
    here, failed = get_ident(), Event()

    def fail(_: int) -> None:
        if get_ident() == here:
            assert failed.wait(10)
        else:
            failed.set()
            raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        run(5, fail)
