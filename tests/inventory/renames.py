"""What became of everything a user had: an earlier inventory, today's, and the map between the two.

`renamed.json` holds, by section of the inventory, what became of an old entry:

    "options":  {"screen --viable": "screen --exclude-essential"}            another name
    "settings": {"run.replicates": {"value": 2000, "reason": "…"}}           another value under the same name
                {"training.loss": {"name": "…", "value": "…", "reason": "…"}}                          or both
    "commands": {"bench*": {"removed": "…"}}                                 gone, and why

A key that ends in ``*`` stands for all entries that begin so, and its name ends in ``*`` too; an exact key
goes before it, and a longer one before a shorter. What follows from another section needs no entry: options
of a renamed command, parameters of a renamed function, settings in presets, values of a renamed setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Sections = Mapping[str, Mapping[str, Any]]
UNCHANGED = object()


@dataclass(frozen=True)
class Fate:
    """What became of one entry: its name today, its value if that was changed, or why it is gone."""

    name: str
    value: Any = UNCHANGED
    removed: str = ""


class Renames:
    """The map of one `renamed.json`."""

    def __init__(self, renamed: Sections) -> None:
        self.renamed = renamed

    def key_of(self, section: str, name: str) -> str | None:
        """Return the key of the map that speaks of an entry."""
        known = self.renamed.get(section, {})
        if name in known:
            return name
        prefixes = [key for key in known if key.endswith("*") and name.startswith(key[:-1])]
        return max(prefixes, key=len, default=None)

    def fate(self, section: str, name: str) -> Fate:
        """Return what became of an entry."""
        key = self.key_of(section, name)
        if key is None:
            return self._implied(section, name)
        said = self.renamed[section][key]
        if isinstance(said, str):
            said = {"name": said}
        if "removed" in said:
            return Fate(name, removed=said["removed"])
        new = said.get("name", key)
        if key.endswith("*"):
            new = new[:-1] + name[len(key) - 1 :]
        return Fate(new, said.get("value", UNCHANGED))

    def _implied(self, section: str, name: str) -> Fate:
        """Return what follows for an entry from what became of the one that it belongs to."""
        if section == "options":  # `data build --from` belongs to the command `data build`
            command, _, parameter = name.rpartition(" ")
            owner = self.fate("commands", command) if command else Fate("")
            return Fate(f"{owner.name} {parameter}".strip(), removed=owner.removed)
        if section == "public_names" and name.endswith(")"):
            function, _, parameter = name.partition("(")
            owner = self.fate(section, function)
            return Fate(f"{owner.name}({parameter}", removed=owner.removed)
        if section == "preset_values":  # `experiment/yeast-xga: training.epochs`
            preset, _, key = name.partition(": ")
            owner = self.fate("presets", preset)
            return Fate(f"{owner.name}: {self.setting(key)}", removed=owner.removed)
        if section == "choices":  # `training.loss: squared`
            setting, _, value = name.partition(": ")
            return Fate(f"{self.setting(setting)}: {value}")
        return Fate(name)

    def setting(self, name: str) -> str:
        """Return a setting's name today; models may be left out, as in presets."""
        known = self.renamed.get("settings", {})
        of_models = [key for key in known if key.startswith(f"{name} (")]
        if self.key_of("settings", name) is None and of_models:
            return self.fate("settings", of_models[0]).name.partition(" (")[0]
        return self.fate("settings", name).name

    def value(self, section: str, value: Any) -> Any:
        """Return an old value with today's names of settings, which lists of ablations and searches hold."""
        if section != "preset_values" or not isinstance(value, list):
            return value
        return [self._word(word) for word in value]

    def _word(self, word: Any) -> Any:
        found = re.fullmatch(r"([\w.]+)=(.*)", word) if isinstance(word, str) else None
        return f"{self.setting(found[1])}={found[2]}" if found else word


def problems(before: Sections, now: Sections, renamed: Sections) -> list[str]:
    """Return one sentence for everything that is lost, changed without a word, or wrongly mapped."""
    renames, found = Renames(renamed), []
    for section, entries in renamed.items():
        for key, said in entries.items():
            mapped = [name for name in before.get(section, {}) if renames.key_of(section, name) == key]
            if not mapped:
                found.append(f"renamed.json, {section}: nothing in before.json is called {key!r}")
            if isinstance(said, str):
                if key.endswith("*") != said.endswith("*"):
                    found.append(
                        f"renamed.json, {section}: {key!r} and {said!r} must both end in *, or neither"
                    )
            elif not (said.keys() <= {"name", "value", "reason"} or said.keys() == {"removed"}):
                found.append(f"renamed.json, {section}: {key!r} has keys that mean nothing: {sorted(said)}")
            elif not (said.get("reason") or said.get("removed")):
                found.append(f"renamed.json, {section}: {key!r} gives no reason")
    for section, entries in before.items():
        today = now.get(section, {})
        for name, value in entries.items():
            fate = renames.fate(section, name)
            if fate.removed:
                if name in today:
                    found.append(f"{section}: {name!r} is said to be removed and is still there")
                continue
            if fate.name not in today:
                as_ = "" if fate.name == name else f" (now {fate.name!r}, by renamed.json)"
                found.append(f"{section}: {name!r}{as_} is not there: put it back, or map it in renamed.json")
                continue
            expected = renames.value(section, value) if fate.value is UNCHANGED else fate.value
            if today[fate.name] != expected:
                found.append(f"{section}: {name!r} was to be {expected!r} and is {today[fate.name]!r}")
    return found
