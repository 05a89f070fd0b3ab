"""Small changes to a text, as transfers, editors and spreadsheets make them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

TOKENS = [
    "", "NaN", "-1", "1e308", "1e-320", "0", "2", "-", "YAL001C", "DOUBLE", "CPX-1(1)", "GO:2", "\t", ";",
    ",", " ", '"', "\n", "#", "!", ">", "[", "|", "\r", "\0", "é", "%00", "x" * 70, "1_0", "²", "inf",
]  # fmt: skip
KINDS = ["insert", "delete", "replace", "drop line", "repeat line", "swap cells", "cut", "bytes"]


def _changed(text: str, kind: str, where: float, token: str, length: int) -> str:
    at, lines = int(where * (len(text) + 1)), text.split("\n")
    line = min(int(where * len(lines)), len(lines) - 1)
    if kind == "insert":
        return text[:at] + token + text[at:]
    if kind == "delete":
        return text[:at] + text[at + length :]
    if kind == "replace":
        return text[:at] + token + text[at + length :]
    if kind == "cut":
        return text[:at]
    if kind == "drop line":
        del lines[line]
    elif kind == "repeat line":
        lines.insert(line, lines[line])
    elif kind == "swap cells":
        cells = lines[line].split("\t")
        cells[length % len(cells)], cells[0] = cells[0], cells[length % len(cells)]
        lines[line] = "\t".join(cells)
    return "\n".join(lines)


@st.composite
def mutations(draw: st.DrawFn) -> Callable[[str], bytes]:
    """Draw up to four changes; the result is no text where bytes that are not UTF-8 were added."""
    step = st.tuples(
        st.sampled_from(KINDS), st.floats(0, 1, exclude_max=True), st.sampled_from(TOKENS), st.integers(1, 6)
    )
    steps = draw(st.lists(step, min_size=1, max_size=4))

    def change(text: str) -> bytes:
        for kind, where, token, length in steps:
            text = _changed(text, kind, where, token, length)
        return text.encode() + (b"\xff\xfe" if any(kind == "bytes" for kind, *_ in steps) else b"")

    return change
