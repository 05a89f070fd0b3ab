"""MATLAB files: the same as SciPy reads, and never a crash."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.io import loadmat, savemat

from wildtype.errors import SourceError
from wildtype.sources.yeast.screens.jonikas2009 import MATRIX
from wildtype.sources.yeast.screens.mat5 import LIMIT, read_mat5


def saved(content: dict[str, Any], *, packed: bool = False) -> bytes:
    stream = io.BytesIO()
    savemat(stream, content, do_compression=packed)
    return stream.getvalue()


def cells(texts: list[str]) -> np.ndarray:
    out = np.empty((1, len(texts)), dtype=object)
    for i, text in enumerate(texts):
        out[0, i] = text
    return out


NUMBERS = st.sampled_from([np.float64, np.float32, np.uint8, np.int16, np.int64]).flatmap(
    lambda kind: npst.arrays(kind, st.tuples(st.integers(1, 6), st.integers(1, 6)))
)
NAMES = st.lists(st.text("ABCxyz019-:éΔ", min_size=1, max_size=9), min_size=1, max_size=5)


@given(NUMBERS, NAMES, st.booleans())
def test_what_is_saved_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, numbers: np.ndarray, names: list[str], packed: bool
) -> None:
    path = tmp_path_factory.mktemp("mat") / "file.mat"
    path.write_bytes(saved({"other": 1.0, "a": numbers, "b_name": cells(names)}, packed=packed))
    found = read_mat5(path, ("a", "b_name"))
    np.testing.assert_array_equal(found["a"], numbers.astype(np.float64))
    assert found["b_name"] == names


def test_numbers_stored_in_a_smaller_type_and_the_other_byte_order(tmp_path: Path) -> None:
    def element(kind: int, content: bytes) -> bytes:
        return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)

    small = struct.pack(">I", 1 << 16 | 1) + b"m\0\0\0"  # the name stands in the tag
    inner = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 3)) + small
    inner += element(2, bytes([1, 2, 3, 4, 5, 6]))  # a matrix of doubles kept as bytes, column by column
    path = tmp_path / "file.mat"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + element(14, inner))
    np.testing.assert_array_equal(read_mat5(path, ["m"])["m"], [[1, 3, 5], [2, 4, 6]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"b": 1.0}, "has no variable 'a'"),
        ({"a": np.array([[1j, 2.0]])}, "in place of real numbers or text"),
        ({"a": np.zeros((2, 2, 2))}, "in place of real numbers or text"),
        ({"a": "text"}, "in place of real numbers or text"),
        ({"a": {"field": 1.0}}, "in place of real numbers or text"),
        ({"a": np.array([[1.0, "x"]], dtype=object)}, "a cell that is not one line of text"),
        ({"a": cells(["x"])[:, :0]}, None),
    ],
)
def test_other_variables_are_refused(tmp_path: Path, content: dict[str, Any], message: str | None) -> None:
    path = tmp_path / "file.mat"
    path.write_bytes(saved(content))
    if message is None:
        assert read_mat5(path, ["a"])["a"] == []
        return
    with pytest.raises(SourceError, match=message):
        read_mat5(path, ["a"])


def test_another_version_a_cut_and_a_bomb_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.mat"
    for data in (b"", b"\x89HDF\r\n\x1a\n" + bytes(600), b"\0" * 200):
        path.write_bytes(data)
        with pytest.raises(SourceError, match="not a MATLAB 5 file"):
            read_mat5(path, ["a"])
    for packed in (False, True):
        whole = saved({"a": np.eye(9)}, packed=packed)
        path.write_bytes(whole[:-5])
        with pytest.raises(SourceError, match="cut short"):
            read_mat5(path, ["a"])
        path.write_bytes(whole + whole[128:])
        with pytest.raises(SourceError, match="the variable 'a' twice"):
            read_mat5(path, ["a"])
    bomb = zlib.compress(bytes(LIMIT + 1), 9)
    path.write_bytes(whole[:128] + struct.pack("<II", 15, len(bomb)) + bomb)
    with pytest.raises(SourceError, match="unpack to more than 64 MiB"):
        read_mat5(path, ["a"])


def test_damage_is_read_or_refused_and_never_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "file.mat"
    whole = [
        saved({"a": np.eye(3), "b": cells(["x", "longer text"])}, packed=packed) for packed in (False, True)
    ]

    @settings(max_examples=300)
    @given(
        st.sampled_from(whole),
        st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=8)), max_size=4),
        st.integers(0, 10_000),
    )
    def check(data: bytes, places: list[tuple[int, bytes]], cut: int) -> None:
        for place, new in places:
            at = place % len(data)
            data = data[:at] + new + data[at + len(new) :]
        path.write_bytes(data[: cut % len(data)] if cut % 3 == 0 else data)
        try:
            found = read_mat5(path, ("a", "b"))
            good = isinstance(found["a"], np.ndarray | list) and isinstance(found["b"], np.ndarray | list)
        except SourceError as error:
            good = str(path) in str(error)
        assert good

    check()


@pytest.mark.real
def test_the_real_file_is_read_as_scipy_reads_it(mirror: Path) -> None:
    path = mirror / MATRIX.name
    wanted = (
        "DM_array_merged",
        "DM_Hill_merged",
        "num_measurements",
        "qindex_out",
        "qnames_out",
        "anames_out",
    )
    found, reference = read_mat5(path, wanted), loadmat(path)
    for name in wanted[:4]:
        np.testing.assert_array_equal(found[name], reference[name])
    for name in wanted[4:]:
        assert found[name] == [str(cell[0]) for cell in reference[name][0]]
