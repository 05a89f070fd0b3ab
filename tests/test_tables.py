from __future__ import annotations

import pandas as pd
import pytest

from wildtype.tables import frame_to_csv, harmless


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_text_of_a_table_is_a_formula(start: str) -> None:
    formula = f"{start}cmd|' /C calc'!A0"
    frame = pd.DataFrame({"genes": [formula, "G001,G002", None], formula: [-0.5, 1.0, None]})
    text = frame_to_csv(frame)
    assert text.count(f"'{formula}") == text.count(formula) == 2  # a name and a cell
    assert '"G001,G002",1.0' in text
    assert ",-0.5" in text


def test_numbers_stay() -> None:
    assert harmless(-0.5) == -0.5
