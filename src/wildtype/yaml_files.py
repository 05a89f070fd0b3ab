"""YAML that people write: plans, mappings, descriptions of organisms; small, without repeated keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 8 << 20
MAX_NODES = 200_000
"""Values of a file, those of aliases counted each time that they stand for something."""


class _Plain(yaml.SafeLoader):
    """A safe loader for nodes that are checked already."""


class _AsWritten(_Plain):
    """Takes every key as it is written: no ``on`` as True."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    problem="a key is no name", problem_mark=key.start_mark
                )
        values = [self.construct_object(value, deep=True) for _, value in node.value]
        return dict(zip((key.value for key, _ in node.value), values, strict=True))


def read_yaml(path: str | Path, *, keys_as_written: bool = False) -> Any:
    """Return the plain values of a YAML file.

    Parameters
    ----------
    path : str or path
        Of the file.
    keys_as_written : bool
        Whether keys stay texts, also ``on`` and ``1``.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError, yaml.YAMLError
        If it is no YAML, names a key twice, or is too large once its aliases are expanded.
    """
    with open(path, "rb") as handle:
        content = handle.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    loader = (_AsWritten if keys_as_written else _Plain)(content.decode("utf-8"))
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        if _size(root, {}, set()) > MAX_NODES:
            raise ValueError(f"it holds more than {MAX_NODES:,} values once its aliases are expanded")
        return loader.construct_document(root)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, int], around: set[int]) -> int:
    """Return the number of nodes of an expanded tree; refuse repeated keys and a node within itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in known:
        return known[id(node)]
    if id(node) in around:
        raise ValueError(f"line {node.start_mark.line + 1}: an alias stands within what it names")
    around.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    shown = key.value if len(key.value) <= 60 else key.value[:57] + "..."
                    raise ValueError(
                        f"line {key.start_mark.line + 1}: the key {shown!r} is given twice; keep one"
                    )
                seen.add(key.value)
        below = [item for pair in node.value for item in pair]
    else:
        below = node.value
    total = 1 + sum(_size(item, known, around) for item in below)
    around.discard(id(node))
    known[id(node)] = total
    return total
