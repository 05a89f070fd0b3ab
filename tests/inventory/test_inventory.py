"""Nothing that a user had before the house was rebuilt is lost: `before.json`, and `renamed.json`."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.inventory.renames import problems
from tools.inventory import inventory, written

HERE = Path(__file__).parent
BEFORE = json.loads((HERE / "before.json").read_text(encoding="utf-8"))
RENAMED = json.loads((HERE / "renamed.json").read_text(encoding="utf-8"))


def test_everything_is_still_there() -> None:
    found = problems(BEFORE, inventory(), RENAMED)
    assert not found, "\n".join([f"{len(found)} problems; describe each change in renamed.json", *found])


def test_the_inventory_is_written_one_entry_per_line() -> None:
    assert written(BEFORE) == (HERE / "before.json").read_text(encoding="utf-8")
    entries = sum(len(section) for section in BEFORE.values())
    assert len(written(BEFORE).splitlines()) == entries + 2 * len(BEFORE) + 2


@pytest.mark.parametrize("section", sorted(BEFORE))
def test_an_entry_that_goes_is_missed(section: str) -> None:
    for name in list(BEFORE[section])[:2]:
        now = copy.deepcopy(BEFORE)
        del now[section][name]
        assert any(repr(name) in text and "not there" in text for text in problems(BEFORE, now, {}))


SMALL: dict[str, dict[str, Any]] = {
    "commands": {"data build": None, "bench": None, "bench step": None},
    "options": {
        "--debug": False,
        "data build --from": {"default": None},
        "bench step --nodes": {"default": 9},
    },
    "settings": {"seed": 0, "data.flip": False, "model.trees.bags (cell_transformer)": 3},
    "public_names": {"Run.tables": None, "Run.tables(each)": "required"},
    "presets": {"search/x": None},
    "preset_values": {"search/x: base": ["data.flip=true", "seed"], "search/x: model.trees.bags": 1},
    "choices": {"model.trees.bags: 1": None},
}


def test_what_follows_from_a_rename_needs_no_entry() -> None:
    renamed = {
        "commands": {"data build": "make", "bench*": {"removed": "benchmarks/ at the top of the repository"}},
        "settings": {"data.flip": "data.negate", "model.trees.*": "model.forest.*"},
        "public_names": {"Run.tables": "Run.comparison_tables"},
        "presets": {"search/*": "searches/*"},
    }
    now: dict[str, dict[str, Any]] = {
        "commands": {"make": None},
        "options": {"--debug": False, "make --from": {"default": None}},
        "settings": {"seed": 0, "data.negate": False, "model.forest.bags (cell_transformer)": 3},
        "public_names": {"Run.comparison_tables": None, "Run.comparison_tables(each)": "required"},
        "presets": {"searches/x": None},
        "preset_values": {
            "searches/x: base": ["data.negate=true", "seed"],
            "searches/x: model.forest.bags": 1,
        },
        "choices": {"model.forest.bags: 1": None},
    }
    assert problems(SMALL, now, renamed) == []
    exact = renamed | {
        "settings": {
            "data.flip": "data.negate",
            "model.trees.bags (cell_transformer)": "model.forest.bags (cell_transformer)",
        }
    }
    assert problems(SMALL, now, exact) == []
    assert len(problems(SMALL, now, {})) == 13


@pytest.mark.parametrize(
    ("renamed", "message"),
    [
        ({"settings": {"sed": "seed"}}, "nothing in before.json is called 'sed'"),
        ({"settings": {"sed*": "seed*"}}, "nothing in before.json is called 'sed*'"),
        ({"settings": {"seed": "start"}}, "'seed' (now 'start', by renamed.json) is not there"),
        ({"settings": {"data.*": "datum.*"}}, "'data.flip' (now 'datum.flip', by renamed.json) is not there"),
        ({"settings": {"data.*": "data.flip"}}, "must both end in *"),
        ({"settings": {"seed": {"removed": "not needed"}}}, "is said to be removed and is still there"),
        ({"settings": {"seed": {"removed": ""}}}, "'seed' gives no reason"),
        ({"settings": {"seed": {"value": 0}}}, "'seed' gives no reason"),
        ({"settings": {"seed": {"value": 1, "reason": "x"}}}, "'seed' was to be 1 and is 0"),
        ({"settings": {"seed": {"now": "x", "reason": "x"}}}, "has keys that mean nothing"),
        ({"colours": {"red": "blue"}}, "nothing in before.json is called 'red'"),
    ],
)
def test_a_map_that_is_wrong_is_refused(renamed: dict[str, Any], message: str) -> None:
    assert any(message in text for text in problems(SMALL, SMALL, renamed))


def test_a_changed_value_must_be_mapped() -> None:
    now = copy.deepcopy(SMALL)
    now["settings"]["seed"] = 1
    assert problems(SMALL, now, {}) == ["settings: 'seed' was to be 0 and is 1"]
    assert problems(SMALL, now, {"settings": {"seed": {"value": 1, "reason": "a better start"}}}) == []
