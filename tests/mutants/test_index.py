from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.mutants import MutantTable
from wildtype.mutants.index import SetIndex

SETS = st.lists(
    st.sets(st.integers(0, 300), max_size=3).map(lambda s: tuple(sorted(s))), min_size=1, max_size=25
)


@given(SETS, SETS)
@settings(deadline=None)
def test_find_equals_a_dictionary(known: list[tuple[int, ...]], asked: list[tuple[int, ...]]) -> None:
    first: dict[tuple[int, ...], int] = {}
    for row, genes in enumerate(known):
        first.setdefault(genes, row)
    found = SetIndex(MutantTable.from_sets(known)).find(MutantTable.from_sets(asked + known))
    assert found.tolist() == [first.get(genes, -1) for genes in asked + known]
