"""Small workbooks written byte by byte: no library at hand writes the older .xls format."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence

SECTOR = 512
END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
Cell = str | float | bool | None
DATE = "date:"
"""A text cell that begins so is written as a number in a date format."""


def xls(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    """Return a BIFF8 workbook (Excel 97–2003) in its compound file."""
    formats = b"".join(_record(0xE0, struct.pack("<HH16x", 0, key)) for key in (0, 14))  # plain, date
    pages = [_sheet(rows) for rows in sheets.values()]
    head = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)) + _record(0x42, b"\xb0\x04") + formats
    offset = len(head) + sum(4 + 8 + 2 * len(name) for name in sheets) + 4
    for name, page in zip(sheets, pages, strict=True):
        text = name.encode("utf-16-le")
        head += _record(0x85, struct.pack("<IHBB", offset, 0, len(name), 1) + text)
        offset += len(page)
    return _compound(head + _record(0x0A, b"") + b"".join(pages))


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _sheet(rows: Sequence[Sequence[Cell]]) -> bytes:
    out = _record(0x809, struct.pack("<HHHHII", 0x600, 16, 0, 0, 0, 0))
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            if isinstance(value, bool):
                out += _record(0x205, struct.pack("<HHHBB", r, c, 0, value, 0))
            elif isinstance(value, str) and value == "#N/A":
                out += _record(0x205, struct.pack("<HHHBB", r, c, 0, 0x2A, 1))
            elif isinstance(value, str) and value.startswith(DATE):
                out += _record(0x203, struct.pack("<HHHd", r, c, 1, float(value.removeprefix(DATE))))
            elif isinstance(value, str):
                out += _record(
                    0x204, struct.pack("<HHHHB", r, c, 0, len(value), 1) + value.encode("utf-16-le")
                )
            elif value is not None:
                out += _record(0x203, struct.pack("<HHHd", r, c, 0, value))
    return out + _record(0x0A, b"")


def _compound(stream: bytes) -> bytes:
    stream += b"\0" * (max(4096, -(-len(stream) // SECTOR) * SECTOR) - len(stream))
    count = len(stream) // SECTOR
    assert count <= SECTOR // 4 - 2, "one allocation sector holds 63 kB of workbook"
    table = [FAT, END, *range(3, count + 2), END]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIIII", 0, 1, 1, 0, 4096, END, 0, END, 0, 0)
    header += struct.pack("<108I", *[FREE] * 108)
    return b"".join(
        [
            header,
            struct.pack("<128I", *table, *[FREE] * (128 - len(table))),
            _entry("Root Entry", 5, 1, END, 0),
            _entry("Workbook", 2, FREE, 2, len(stream)),
            *[_entry("", 0, FREE, 0, 0)] * 2,
            stream,
        ]
    )


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le")
    out = text.ljust(64, b"\0") + struct.pack("<HBB", len(text) + 2 if text else 0, kind, 1)
    return out + struct.pack("<III", FREE, FREE, child) + bytes(36) + struct.pack("<III", start, size, 0)


def xlsx(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    """Return an .xlsx workbook."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()
