from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import ConfigError
from wildtype.experiments.settings.ablation import read_ablation
from wildtype.experiments.settings.tuning import read_tuning
from wildtype.sources.user_organisms.description import read_description
from wildtype.sources.user_tables.layout import read_layout
from wildtype.yaml_files import MAX_BYTES, read_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
READERS = [read_ablation, read_tuning, read_description, read_layout]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text", [BOMB, "a: &a [*a]\n", "[" * 5_000, "a: " + "x" * MAX_BYTES, "? [a]\n: b\n", "- ${oc.env:HOME}"]
)
def test_yaml_that_would_fill_the_memory_is_one_sentence(read, text: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("keys_as_written", [False, True])
def test_aliases_and_keys(keys_as_written: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: &a [1, 2]\nb: *a\non: 3\n")
    key = "on" if keys_as_written else True
    assert read_yaml(path, keys_as_written=keys_as_written) == {"a": [1, 2], "b": [1, 2], key: 3}
    path.write_text("a: 1\nb: {c: 1, c: 2}\n")
    with pytest.raises(ValueError, match="line 2: the key 'c' is given twice"):
        read_yaml(path, keys_as_written=keys_as_written)


def test_many_keys_are_checked_in_one_pass(tmp_path: Path) -> None:
    """With a search per key, this would take minutes."""
    path = tmp_path / "x.yaml"
    path.write_text("{" + ", ".join(f"k{i}" for i in range(20_000)) + "}")
    assert len(read_yaml(path)) == 20_000
