"""MATLAB files of version 5, as far as published matrices need them: numbers, and cells of text.

A reader of our own, because SciPy's trusts the sizes in the file: a few changed bytes crash the interpreter.
This one compares every size with the bytes that are there.

Layout ("MAT-File Format", level 5): a header of 128 bytes, then elements (type, size, content, padding to 8
bytes). A variable is an element of type MATRIX that holds its class, dimensions, name and content as
elements; it may be compressed. Numbers are in column-major order, in the smallest type that
fits them.

Legend: r rows · s columns.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.sources.text import REMEDY, read_bytes

LIMIT = 64 << 20
"""Largest size in bytes, packed and unpacked."""
MATRIX, COMPRESSED = 14, 15
NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
TEXTS = {1: "utf-8", 2: "utf-8", 16: "utf-8", 4: "utf-16", 17: "utf-16", 18: "utf-32"}
"""Types in which characters are stored, and how."""
CELL, CHAR, NUMERIC = 1, 4, range(6, 16)
COMPLEX = 0x800
_HEADER, _MARK = 128, slice(124, 128)
_ORDERS = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}

Variable = NDArray[np.float64] | list[str]


class _Damage(Exception):
    """What is wrong with the bytes; becomes a `SourceError` that names the file."""


@dataclass(frozen=True)
class _Element:
    kind: int
    content: memoryview


def read_mat5(path: str | Path, names: Collection[str]) -> dict[str, Variable]:
    """Return variables by name: numbers as float64 [r, s], cell arrays of text as a list in column order.

    Raises
    ------
    SourceError
        If the file cannot be read, is of another version, cut short, damaged, larger than `LIMIT`, or has not
        each of ``names`` exactly once, as real numbers in two dimensions or as cells of text.
    """
    path = Path(path)
    data = read_bytes(path, limit=LIMIT)
    order = _ORDERS.get(data[_MARK])
    if order is None:
        raise SourceError(f"{path} is not a MATLAB 5 file, expected its version mark: {REMEDY}")
    found: dict[str, Variable] = {}
    try:
        for element in _unpacked(memoryview(data)[_HEADER:], order):
            if element.kind != MATRIX:
                raise _Damage(f"an element of type {element.kind} in place of a variable")
            name, kind, shape, parts = _open(element, order)
            if name not in names:
                continue
            if name in found:
                raise _Damage(f"the variable {name!r} twice")
            found[name] = _value(kind, shape, parts, order)
    except _Damage as damage:
        raise SourceError(f"{path} holds {damage}, expected a complete MATLAB 5 file: {REMEDY}") from None
    absent = next((name for name in names if name not in found), None)
    if absent is not None:
        raise SourceError(f"{path} has no variable {absent!r}, expected {', '.join(names)}: {REMEDY}")
    return found


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise _Damage("a variable that is cut short")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start = at + 8
        if kind >> 16:  # up to four bytes are in the tag itself
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            if size > 4:
                raise _Damage("an element that is larger than its place")
        if start + size > len(data):
            raise _Damage("a variable that is cut short")
        yield _Element(kind, data[start : start + size])
        at = start + size
        if kind != COMPRESSED:
            at += -at % 8


def _unpacked(data: memoryview, order: str) -> Iterator[_Element]:
    left = LIMIT
    for element in _elements(data, order):
        if element.kind != COMPRESSED:
            yield element
            continue
        stream = zlib.decompressobj()
        try:
            # One byte more than is allowed shows that there is more, without unpacking it.
            content = stream.decompress(element.content, left + 1)
        except zlib.error as error:
            raise _Damage(f"a damaged variable ({error})") from None
        if len(content) > left:
            raise _Damage(f"variables that unpack to more than {LIMIT >> 20} MiB")
        if not stream.eof:
            raise _Damage("a compressed variable that is cut short")
        left -= len(content)
        yield from _elements(memoryview(content), order)


def _open(variable: _Element, order: str) -> tuple[str, int, tuple[int, ...], list[_Element]]:
    """Return name, class (with its flags), dimensions and the content of a variable."""
    parts = list(_elements(variable.content, order))
    if len(parts) < 3 or len(parts[0].content) != 8 or len(parts[1].content) % 4:
        raise _Damage("a variable without class, dimensions and name")
    (flags,) = struct.unpack_from(f"{order}I", parts[0].content)
    shape = struct.unpack(f"{order}{len(parts[1].content) // 4}i", parts[1].content)
    # Dimensions are signed in the file, and the product of two negative ones is positive.
    if any(size < 0 for size in shape):
        raise _Damage("a variable with a negative dimension")
    return (
        bytes(parts[2].content).decode("ascii", errors="replace"),
        flags & (COMPLEX | 0xFF),
        shape,
        parts[3:],
    )


def _value(kind: int, shape: tuple[int, ...], parts: list[_Element], order: str) -> Variable:
    if kind in NUMERIC and len(shape) == 2 and len(parts) == 1:
        return _numbers(parts[0], shape, order)
    if kind == CELL:
        # As floats: a product of damaged dimensions may not fit 64 bits.
        if len(parts) != int(np.prod([float(size) for size in shape])):
            raise _Damage("a cell array that is cut short")
        return [_text(part, order) for part in parts]
    raise _Damage(
        f"a variable of class {kind & 0xFF} and dimensions {shape} in place of real numbers or text"
    )


def _numbers(part: _Element, shape: tuple[int, ...], order: str) -> NDArray[np.float64]:
    if part.kind not in NUMBERS:
        raise _Damage(f"numbers of an unknown type {part.kind}")
    stored = np.dtype(order + NUMBERS[part.kind])
    if len(part.content) != stored.itemsize * shape[0] * shape[1]:
        raise _Damage(f"{len(part.content)} bytes in place of {shape[0]} × {shape[1]} numbers")
    return np.frombuffer(part.content, stored).astype(np.float64).reshape(shape, order="F")


def _text(cell: _Element, order: str) -> str:
    if cell.kind != MATRIX:
        raise _Damage("a cell that is no variable")
    _, kind, shape, parts = _open(cell, order)
    if kind != CHAR or len(shape) != 2 or shape[0] > 1 or len(parts) != 1 or parts[0].kind not in TEXTS:
        raise _Damage("a cell that is not one line of text")
    encoding = TEXTS[parts[0].kind]
    if encoding != "utf-8":
        encoding += "-le" if order == "<" else "-be"
    try:
        return bytes(parts[0].content).decode(encoding)
    except UnicodeDecodeError:
        raise _Damage(f"a cell that is not {encoding.upper()} text") from None
