"""Work in several threads: every piece once, settings restored, errors raised."""

from collections.abc import Iterator
from threading import Event, get_ident

import pytest
import torch

from wildtype.nn.threads import ahead, each, loops, shares


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


def test_work_ahead_is_done_in_order_in_one_thread_while_the_one_before_is_used():
    begun: list[tuple[int, int, int]] = []
    second = Event()

    def work(i: int) -> int:
        begun.append((i, get_ident(), torch.get_num_threads()))
        if i == 1:
            second.set()
        return 10 * i

    answers = []
    for i, answer in ahead(range(4), work):
        answers.append(answer())
        if i == 0:
            assert second.wait(60)  # the second is done while the first is at hand
    assert answers == [0, 10, 20, 30]
    assert [i for i, _, _ in begun] == [0, 1, 2, 3]
    assert len({thread for _, thread, _ in begun}) == 1
    assert begun[0][1] != get_ident()
    assert {threads for _, _, threads in begun} == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("instead", [False, True])
def test_the_thread_ahead_may_be_one_of_torchs(instead: bool) -> None:
    for _, answer in ahead(range(2), lambda i: i, instead=instead):
        answer()
        assert torch.get_num_threads() == 3 - instead
    assert torch.get_num_threads() == 3
    for _ in ahead(range(2), lambda i: i, instead=instead):
        break  # nobody asks for more
    assert torch.get_num_threads() == 3


def test_without_a_second_thread_work_is_done_where_it_is_asked_for():
    torch.set_num_threads(1)
    done = [(i, answer()) for i, answer in ahead(range(3), lambda i: (i, get_ident()))]
    assert done == [(i, (i, get_ident())) for i in range(3)]


def test_an_error_ahead_is_raised_where_the_answer_is_wanted():
    def work(i: int) -> int:
        if i == 1:
            raise ValueError("one")
        return i

    answers = [answer for _, answer in ahead(range(3), work)]
    assert (answers[0](), answers[2]()) == (0, 2)
    with pytest.raises(ValueError, match="one"):
        answers[1]()


def test_nothing_is_done_ahead_of_items_that_nobody_asks_for():
    begun: list[int] = []
    for i, answer in ahead(range(100), begun.append):
        answer()
        if i == 3:
            break
    # The next one may have begun before nobody asked for more.
    assert begun in ([0, 1, 2, 3], [0, 1, 2, 3, 4])
