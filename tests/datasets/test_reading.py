from __future__ import annotations

import pytest

from wildtype.datasets.reading import StageReport
from wildtype.errors import DatasetError


def test_every_count_has_a_name_that_says_what_it_is() -> None:
    report = StageReport(
        "aggregate", "x", "y", 10, 8, {"lost": 2}, {"alike": 3}, {"assumed": 3}, {"changed": 1}
    )
    assert report.excluded == {"lost": 2, "merged: alike": 3}
    assert report.counts == {"lost": 2, "merged: alike": 3, "added: assumed": 3, "changed": 1}
    assert StageReport(**report.to_json()) == report


def test_counts_of_nothing_are_left_out() -> None:
    assert StageReport("convert", "x", "y", 1, 1, {"lost": 0}).counts == {}


def test_a_row_that_is_not_accounted_for_is_an_error() -> None:
    with pytest.raises(DatasetError, match="10 rows came in and 9 went out, but 0 are accounted for"):
        StageReport("convert", "genes", "known", 10, 9)


def test_reports_on_parts_of_the_rows_add_up() -> None:
    parts = [
        StageReport("convert", "genes", "known", 10, 8, {"unknown": 2}, noted={"changed": 1}),
        StageReport("convert", "genes", "known", 5, 5),
        StageReport("convert", "genes", "known", 4, 2, {"foreign": 1, "unknown": 1}),
    ]
    expected = StageReport(
        "convert", "genes", "known", 19, 15, {"unknown": 3, "foreign": 1}, noted={"changed": 1}
    )
    assert StageReport.together(parts) == expected
    assert StageReport.together(parts[:1]) == parts[0]
