"""What transfers, editors, spreadsheets and malice do to a file, as hypothesis strategies.

A `Damage` is applied to a whole file; what is compressed is unpacked first, changed, and packed again.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass

from hypothesis import strategies as st

LIMIT = 1 << 20
"""Unpacked size, in bytes, that readers are held to while files are damaged; seeds are far smaller."""
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
JUNK = [
    b"", b" ", b"-", b"0", b"-1", b"1.5", b"NaN", b"nan", b"NA", b"inf", b"-inf", b"1e999", b"1e308",
    b"1e-320", b"99999999999999999999", b"1_0", b"0x10", b"1,5", b"=1+1", b"'", b'"', b"%00", b"\\N",
    b"YAL001C", b"DOUBLE", b"YAL001C+YAL002W_tm1", b"YAL002W_dma1", b"null", b"[]", b"{}", b"../../x",
    b"x" * 10_240, b"9" * 5_000, b"\x01", b"\x0b", b"\x0c", b"\x1c", b"\x1b[31m", b"\x7f", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\xc2\xa0", b"\xef\xbb\xbf", "²".encode(), "٣".encode(), "µΔ".encode(), b"\xff",
    b"\xc3\x28", b"\0",
]  # fmt: skip
"""Cells that are no good, or only just: numbers beyond all bounds, marks, bytes that are no text."""
IN_A_LINE = [junk for junk in JUNK if junk not in (b"\0", b'"')]
"""Cells that leave the line they stand in one line."""
SEPARATORS = (b"\t", b",", b";", b" ")
BYTES = ["insert", "delete", "flip", "cut"]
LINES = ["repeat line", "drop line", "swap lines", "blank line"]
CELLS = ["cell", "cell", "drop cell", "swap cells", "case"]
COLUMNS = ["swap columns", "drop column", "repeat column"]
ENCODINGS = ["byte order mark", "utf-16", "crlf", "cr", "latin-1"]
WRAPPINGS = [
    "plain", "gzip", "cut gzip", "flipped gzip", "more after gzip", "bomb", "empty", "directory", "missing"
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One change; `where` and `other` are places from 0 to 1."""

    kind: str
    where: float
    other: float
    junk: bytes

    def on(self, data: bytes) -> bytes:
        """Return the changed content."""
        if self.kind in BYTES:
            return self._bytes(data)
        if self.kind in ENCODINGS:
            return _encoded(self.kind, data)
        lines = data.split(b"\n")
        if self.kind in COLUMNS:
            return b"\n".join(self._columns(line) for line in lines)
        at, to = (min(int(x * len(lines)), len(lines) - 1) for x in (self.where, self.other))
        if self.kind == "repeat line":
            lines.insert(to, lines[at])
        elif self.kind == "drop line":
            del lines[at]
        elif self.kind == "swap lines":
            lines[at], lines[to] = lines[to], lines[at]
        elif self.kind == "blank line":
            lines.insert(at, b"")
        else:
            lines[at] = self._cells(lines[at])
        return b"\n".join(lines)

    def _bytes(self, data: bytes) -> bytes:
        at = int(self.where * (len(data) + 1))
        length = 1 + int(self.other * 12)
        if self.kind == "insert":
            return data[:at] + self.junk + data[at:]
        if self.kind == "delete":
            return data[:at] + data[at + length :]
        if self.kind == "cut":
            return data[:at]
        flipped = bytes(byte ^ (1 << int(self.other * 8)) for byte in data[at : at + 1])
        return data[:at] + flipped + data[at + 1 :]

    def _cells(self, line: bytes) -> bytes:
        mark = separator(line)
        cells = line.split(mark)
        at = min(int(self.other * len(cells)), len(cells) - 1)
        if self.kind == "cell":
            cells[at] = self.junk
        elif self.kind == "drop cell":
            del cells[at]
        elif self.kind == "swap cells":
            cells[0], cells[at] = cells[at], cells[0]
        else:
            cells[at] = cells[at].swapcase()
        return mark.join(cells)

    def _columns(self, line: bytes) -> bytes:
        mark = separator(line)
        cells = line.split(mark)
        at, to = int(self.where * 8), int(self.other * 8)
        if at < len(cells) and to < len(cells):
            if self.kind == "swap columns":
                cells[at], cells[to] = cells[to], cells[at]
            elif self.kind == "drop column":
                del cells[at]
            else:
                cells.insert(to, cells[at])
        return mark.join(cells)


def separator(line: bytes) -> bytes:
    """Return the separator that a line has most of."""
    return max(SEPARATORS, key=line.count)


def _encoded(kind: str, data: bytes) -> bytes:
    if kind == "byte order mark":
        return b"\xef\xbb\xbf" + data
    if kind == "utf-16":
        return data.decode("utf-8", errors="replace").encode("utf-16")
    if kind == "latin-1":
        return data.decode("utf-8", errors="replace").encode("latin-1", errors="replace")
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n" if kind == "crlf" else b"\r")


def unpacked(data: bytes) -> bytes:
    """Return the content of what may be gzip-compressed."""
    return gzip.decompress(data) if data.startswith(GZIP) else data


def packed_like(before: bytes, content: bytes) -> bytes:
    """Return content, gzip-compressed where the file was."""
    return gzip.compress(content, 1, mtime=0) if before.startswith(GZIP) else content


@dataclass(frozen=True)
class Damage:
    """What happens to one file.

    Attributes
    ----------
    steps : tuple of Step
        Changes of its content, in turn.
    inner : float or None
        For a zip (a workbook): which member they are made to; None for the file as a whole.
    wrapping : str
        What becomes of the file as such; empty where it stays a file of its kind.
    """

    steps: tuple[Step, ...]
    inner: float | None = None
    wrapping: str = ""

    def on(self, before: bytes) -> bytes | str:
        """Return the file's new bytes, or ``"directory"`` or ``"missing"``."""
        content = unpacked(before)
        if self.inner is not None and content.startswith(ZIP):
            content = self._inside(content, self.inner)
        else:
            content = self._changed(content)
        if self.wrapping in ("directory", "missing"):
            return self.wrapping
        zipped = gzip.compress(content, 1, mtime=0)
        half = len(zipped) // 2
        return {
            "": packed_like(before, content),
            "plain": content,
            "gzip": zipped,
            "cut gzip": zipped[:-9],
            "flipped gzip": zipped[:half] + bytes([zipped[half] ^ 0xFF]) + zipped[half + 1 :],
            "more after gzip": zipped + b"more",
            "bomb": _bomb() if self.wrapping == "bomb" else b"",
            "empty": b"",
        }[self.wrapping]

    def _changed(self, content: bytes) -> bytes:
        for step in self.steps:
            content = step.on(content)
        return content

    def _inside(self, content: bytes, which: float) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
            names = old.namelist()
            chosen = names[min(int(which * len(names)), len(names) - 1)]
            for name in names:
                member = old.read(name)
                new.writestr(zipfile.ZipInfo(name), self._changed(member) if name == chosen else member)
        return out.getvalue()


def _bomb() -> bytes:
    return gzip.compress(bytes(4 * LIMIT), 9, mtime=0)


PLACES = st.floats(0, 1, exclude_max=True)


def steps(kinds: list[str], junk: list[bytes] = JUNK) -> st.SearchStrategy[Step]:
    """Draw one change of the given kinds."""
    return st.builds(Step, st.sampled_from(kinds), PLACES, PLACES, st.sampled_from(junk))


def damages() -> st.SearchStrategy[Damage]:
    """Draw up to three changes of a file, and now and then something that befalls it as a whole."""
    some = st.lists(
        st.one_of(steps(CELLS), steps(LINES), steps(BYTES), steps(COLUMNS), steps(ENCODINGS)), max_size=3
    ).map(tuple)
    whole = st.one_of(st.just(""), st.just(""), st.just(""), st.just(""), st.sampled_from(WRAPPINGS))
    return st.builds(Damage, some, st.none() | PLACES, whole)
