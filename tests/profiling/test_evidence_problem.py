"""What is drawn for measurements of evidence."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.profiling.evidence_problem import EvidenceProblem


def test_evidence_problems_have_the_sizes_asked_for() -> None:
    problem = EvidenceProblem.draw(50, 300, 20, relations=2, neighbours=3, seed=4)
    assert (len(problem.measured), len(problem.queries)) == (300, 20)
    assert [relation.adjacency.shape for relation in problem.relations] == [(50, 50)] * 2
    assert set(problem.lookups()) == {"lookup", "whole tokens"}


@pytest.mark.parametrize("perturbed", [1, 2, 5])
def test_sets_are_distinct_and_those_looked_up_were_not_measured(perturbed: int) -> None:
    problem, again, other = (
        EvidenceProblem.draw(40, 12, 8, relations=2, neighbours=1, perturbed=perturbed, seed=seed)
        for seed in (1, 1, 2)
    )
    sets = [
        frozenset(row.tolist())
        for table in (problem.measured, problem.queries)
        for row in table.matrix(perturbed)
    ]
    assert len(sets) == len(set(sets)) == 20
    assert {len(one) for one in sets} == {perturbed}
    np.testing.assert_array_equal(problem.measured.gene, again.measured.gene)
    assert not np.array_equal(problem.measured.gene, other.measured.gene)
