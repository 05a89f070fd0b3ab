import pytest

from wildtype.errors import ConfigError
from wildtype.mutants import Kind


def test_codes_are_pinned() -> None:
    # Stored datasets and checkpoints hold these numbers.
    assert [(kind.name, int(kind)) for kind in Kind] == [
        ("ABSENT", 0),
        ("REDUCED", 1),
        ("PRESENT", 2),
        ("ADDED", 3),
        ("OVEREXPRESSED", 4),
    ]


def test_unknown_kind_names_the_known() -> None:
    assert Kind.parse(" Reduced ") is Kind.REDUCED
    with pytest.raises(ConfigError, match="'deleted' is not a kind"):
        Kind.parse("deleted")
