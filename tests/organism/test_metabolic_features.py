"""Features read off a small network, by hand."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from wildtype.organism import GeneIndex, Metabolism
from wildtype.organism.metabolic_features import metabolic_features

# uptake → a → b → growth, and c off the way: a → c
NAMES = ("uptake", "first", "second", "growth", "aside")
NETWORK = np.array([[1, -1, 0, 0, -1], [0, 1, -1, 0, 0], [0, 0, 1, -1, 0], [0, 0, 0, 0, 1]], dtype=float)
RULES = ("", "g1 or (g2 and g3)", "g3", "", "g4")
GENES = GeneIndex(["g4", "g0", "g3", "g2", "g1"])


def network() -> Metabolism:
    lower, upper = np.array([0.0, -5, 0, 0, 0]), np.full(5, 10.0)
    objective = np.array([0.0, 0, 0, 1, 0])
    metabolites = ("m0_c", "m1_c", "m2_c", "m3_c")
    return Metabolism.build(NAMES, metabolites, sparse.csr_array(NETWORK), lower, upper, objective, RULES)


def columns(block: str, **more: object) -> dict[str, dict[str, float]]:
    blocks = {b.name: b for b in metabolic_features(network(), GENES, **more)}  # type: ignore[arg-type]
    found = blocks[block]
    return {g: dict(zip(found.columns, found.values[i].tolist(), strict=True)) for i, g in enumerate(GENES)}


def test_rules_say_what_a_gene_is_part_of() -> None:
    rules = columns("rules")
    assert np.isnan(list(rules["g0"].values())).all()
    assert np.expm1([rules[g]["reactions"] for g in ("g1", "g2", "g3")]).round(4).tolist() == [1, 1, 2]
    assert np.expm1([rules[g]["reactions_lost"] for g in ("g1", "g2", "g3")]).round(4).tolist() == [0, 0, 1]
    assert rules["g3"]["share_lost"] == 0.5
    assert (rules["g3"]["smallest_complex"], rules["g3"]["largest_complex"]) == (1, 2)
    assert np.expm1(rules["g1"]["other_complexes"]).round(4) == 1


def test_steps_from_what_is_taken_up_and_to_growth() -> None:
    place = columns("network")
    assert [place[g]["steps_from_uptake"] for g in ("g1", "g3", "g4")] == [1, 1, 1]
    assert place["g3"]["far_from_uptake"] == 2
    assert [place[g]["steps_to_growth"] for g in ("g1", "g3")] == [2, 1]
    assert place["g3"]["far_to_growth"] == 2
    # the first reaction runs backwards, too, so that what it makes of b can go aside; nothing leads back
    assert np.isnan(place["g4"]["steps_to_growth"])
    assert (place["g1"]["reversible"], place["g4"]["reversible"]) == (1, 0)


def test_subsystems_are_shares_or_components() -> None:
    few = columns("subsystems", subsystems=["", "A", "B", "", "A"])
    assert few["g3"] == {"A": 0.5, "B": 0.5}
    assert few["g4"] == {"A": 1, "B": 0}
    names = [block.name for block in metabolic_features(network(), GENES)]
    assert names == ["rules", "network"]
