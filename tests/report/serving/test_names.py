from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.organism import GeneIndex
from wildtype.report.serving.names import GeneNames

GENES = GeneIndex(
    ["YAL001C", "YBR160W", "YAL002W", "YDL132W"],
    {"YAL001C": "TFC3", "YBR160W": "CDC28", "YDL132W": "CDC53"},
    {"YBR160W": ["HSL5", "SRM5"], "YAL002W": ["CDC2", "TFC"]},
)


def names(text: str, count: int = 10) -> list[str]:
    return [match.name for match in GeneNames(GENES).complete(text, count)]


def test_names_of_all_kinds_are_completed_whatever_their_case() -> None:
    assert names("cdc") == ["CDC28", "CDC53", "CDC2"]
    assert names("yal") == ["YAL001C", "YAL002W"]
    assert names("srm") == ["SRM5"]
    assert names("160") == ["YBR160W"]


def test_a_whole_name_comes_first_and_a_gene_stands_once() -> None:
    assert names("CDC2") == ["CDC2", "CDC28"]
    assert names("TFC") == ["TFC", "TFC3"]
    assert names("5") == ["CDC53", "HSL5"]


def test_nothing_and_no_name_are_completed_by_nothing() -> None:
    assert names("  ") == []
    assert names("<script>") == []
    assert names("c", 2) == ["CDC28", "CDC53"]


@settings(max_examples=25)
@given(st.text(max_size=6), st.integers(0, 3))
def test_every_gene_that_is_given_has_the_text_in_its_name(text: str, count: int) -> None:
    found = GeneNames(GENES).complete(text, count)
    assert len(found) <= count
    assert len({match.gene for match in found}) == len(found)
    for match in found:
        assert text.strip().upper() in match.name.upper()
        assert GENES.find(match.name) == match.gene
