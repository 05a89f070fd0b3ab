"""Writes the table of all settings into docs/reference.md: python -m tools.settings_table."""

from __future__ import annotations

from pathlib import Path

from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.registry import MODELS, config_class
from wildtype.settings import Declared, declared

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
BEGIN = "<!-- settings: written by tools/settings_table.py -->"
END = "<!-- end of settings -->"


def table() -> str:
    """Return the settings of `wildtype train` as Markdown: one table for all models, one for each model."""
    general = [found for found in declared(TrainConfig()) if not found.name.startswith("model.")]
    parts = [_rows(general)]
    for name in MODELS:
        parts.append(f"### `model={name}`\n\n{_rows(list(declared(config_class(name)(), 'model.')))}")
    return "\n\n".join(parts)


def _rows(settings: list[Declared]) -> str:
    lines = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for found in settings:
        allowed = found.allowed or found.kind
        lines.append(f"| `{found.name}` | `{_text(found.value)}` | {allowed} | {found.setting.help} |")
    return "\n".join(lines)


def _text(value: object) -> str:
    words = {"None": "null", "True": "true", "False": "false", "": "''"}
    text = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return words.get(text, text)


if __name__ == "__main__":
    page = REFERENCE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    REFERENCE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}", encoding="utf-8")
