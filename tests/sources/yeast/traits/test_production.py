"""Recipes for production phenotypes."""

from __future__ import annotations

import shlex

import pytest

from wildtype.sources.yeast.traits.production import RECIPES

IMPORTED = {"genes", "value", "kind", "dose", "condition", "phenotype", "sd", "replicate"}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_says_what_to_take_and_why_there_is_no_parser(recipe) -> None:
    assert {"genes", "value"} <= set(recipe.columns) <= IMPORTED
    assert "not confirmed" in recipe.why
    assert "http" not in recipe.take  # no address is known
    words = shlex.split(
        recipe.command("my table.csv", {column: f"the {column}" for column in recipe.columns})
    )
    assert words[:6] == ["wildtype", "data", "import", "my table.csv", "--organism", "yeast"]
    options = dict(zip(words[6::2], words[7::2], strict=True))
    assert options == {f"--{column}-column": f"the {column}" for column in recipe.columns}


def test_every_column_needs_its_heading() -> None:
    with pytest.raises(KeyError):
        RECIPES[0].command("table.csv", {"genes": "ORF"})
