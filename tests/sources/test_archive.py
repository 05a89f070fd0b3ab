"""Archives are not trusted: nothing leaves the target folder, nothing explodes, nothing is half-written."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wildtype.errors import OutputError, SourceError
from wildtype.sources.archive import archive_kind, copy_member, extract, list_members, read_member
from wildtype.unpacking import UnpackingLimits

FILES = {"Data File S1. Pairs: long format/SGA.txt": b"a\tb\n1\t2\n", "notes/readme.txt": b"read me"}
Make = Callable[[Path, dict[str, bytes]], Path]


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of names that stand twice
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, files: dict[str, bytes], *, packed: bool = False) -> Path:
    with tarfile.open(path, "w:gz" if packed else "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def tgz(path: Path, files: dict[str, bytes]) -> Path:
    return tarred(path, files, packed=True)


ALL = pytest.mark.parametrize("make", [zipped, tarred, tgz])


@ALL
def test_members_are_read_by_path_or_by_its_end(tmp_path: Path, make: Make) -> None:
    path = make(tmp_path / "data.bin", FILES)
    assert archive_kind(path) == ("zip" if make is zipped else "tar")
    assert {m.name: m.size for m in list_members(path)} == {name: len(data) for name, data in FILES.items()}
    for name, data in FILES.items():
        assert read_member(path, name) == read_member(path, name.rsplit("/")[-1]) == data
    assert read_member(path, "Data File S1. Pairs_ long format/SGA.txt") == b"a\tb\n1\t2\n"
    copy_member(path, "SGA.txt", tmp_path / "out" / "pairs.txt")
    assert (tmp_path / "out" / "pairs.txt").read_bytes() == b"a\tb\n1\t2\n"


@ALL
def test_extraction_replaces_a_colon_and_gives_the_files(tmp_path: Path, make: Make) -> None:
    path = make(tmp_path / "data.bin", FILES)
    written = extract(path, tmp_path / "out")
    assert [p.relative_to(tmp_path / "out").as_posix() for p in written] == [
        "Data File S1. Pairs_ long format/SGA.txt",
        "notes/readme.txt",
    ]
    assert [p.read_bytes() for p in written] == list(FILES.values())
    (only,) = extract(path, tmp_path / "some", ["readme.txt"])
    assert [p for p in (tmp_path / "some").rglob("*") if p.is_file()] == [only]


@ALL
def test_a_missing_or_doubtful_member_is_named(tmp_path: Path, make: Make) -> None:
    path = make(tmp_path / "data.bin", {"a/x.txt": b"1", "b/x.txt": b"2"})
    with pytest.raises(SourceError, match=r"no member 'y\.txt'; it holds 'a/x\.txt', 'b/x\.txt'"):
        read_member(path, "y.txt")
    with pytest.raises(SourceError, match=r"several members 'x\.txt' \('a/x\.txt', 'b/x\.txt'\)"):
        read_member(path, "x.txt")


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "a/../../evil.txt",
        "/etc/evil.txt",
        "C:/evil.txt",
        "C:evil.txt",
        "..\\evil.txt",
        "\\\\h\\evil",
        "a\nb.txt",
    ],
)
@ALL
def test_paths_that_leave_the_folder_are_refused(tmp_path: Path, make: Make, name: str) -> None:
    inside = tmp_path / "deep" / "folder"
    inside.mkdir(parents=True)
    path = make(inside / "data.bin", {"fine.txt": b"fine", name: b"evil"})
    for attempt in (
        lambda: extract(path, inside / "out"),
        lambda: extract(path, inside / "out", [name]),
        lambda: read_member(path, name),
    ):
        with pytest.raises(SourceError, match="not unpacked"):
            attempt()
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["data.bin", "deep", "folder"]
    assert read_member(path, "fine.txt") == b"fine"  # the other member harms nobody
    assert len(extract(path, inside / "some", ["fine.txt"])) == 1


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "data.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
        after = tarfile.TarInfo("link/inside.txt")
        archive.addfile(after, io.BytesIO(b""))
    with pytest.raises(SourceError, match=r"'link', which is a (link|device)"):
        extract(path, tmp_path / "out")
    with pytest.raises(SourceError, match=r"'link', which is a (link|device)"):
        read_member(path, "link")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "refusal",
    [
        lambda info: tarfile.OutsideDestinationError(info, "/elsewhere"),
        lambda info: OSError(36, "File name too long", info.name),
    ],
)
@pytest.mark.parametrize("make", [tarred, tgz])
def test_a_member_that_only_the_data_filter_refuses_is_not_unpacked(
    tmp_path: Path,
    make: Make,
    refusal: Callable[[tarfile.TarInfo], Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Filters of later Python versions refuse more; here one that refuses ``b.txt`` takes their place."""
    present, asked = tarfile.data_filter, []

    def stricter(info: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
        asked.append((info.name, Path(folder)))
        if info.name == "b.txt":
            raise refusal(info)
        return present(info, folder)

    monkeypatch.setattr(tarfile, "data_filter", stricter)
    path = make(tmp_path / "data.bin", {"a.txt": b"fine", "b.txt": b"evil"})
    for attempt in (lambda: extract(path, tmp_path / "out"), lambda: read_member(path, "b.txt")):
        with pytest.raises(SourceError, match=r"holds 'b\.txt', which is .*: not unpacked; fetch") as error:
            attempt()
        assert "\n" not in str(error.value)
    assert ("b.txt", tmp_path / "out") in asked
    assert not (tmp_path / "out").exists()
    assert read_member(path, "a.txt") == b"fine"
    assert [p.name for p in extract(path, tmp_path / "some", ["a.txt"])] == ["a.txt"]


@pytest.mark.parametrize(("mode", "what"), [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "a device")])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, mode: int, what: str) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (mode | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(SourceError, match=f"'link', which is {what}"):
        extract(path, tmp_path / "out")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "data.zip", {"secret.txt": b"secret"})
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # general purpose flag of the local header and of the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(SourceError, match=r"'secret\.txt', which is encrypted"):
        read_member(path, "secret.txt")


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "data.zip", {"a.txt": b"a" * 100})
    raw = bytearray(path.read_bytes())
    raw[8:10] = struct.pack("<H", 9)
    at = raw.index(b"PK\x01\x02") + 10
    raw[at : at + 2] = struct.pack("<H", 9)
    path.write_bytes(raw)
    with pytest.raises(SourceError, match="compressed by method 9, which is not known here"):
        read_member(path, "a.txt")


@pytest.mark.parametrize("make", [zipped, tgz])
def test_a_decompression_bomb_is_refused(tmp_path: Path, make: Make) -> None:
    path = make(tmp_path / "bomb", {"zeros": bytes(4 << 20)})
    tight = UnpackingLimits(small=1 << 20)
    for attempt in (
        lambda: read_member(path, "zeros", limits=tight),
        lambda: extract(path, tmp_path / "out", limits=tight),
        lambda: copy_member(path, "zeros", tmp_path / "out", limits=tight),
    ):
        with pytest.raises(SourceError, match="unpacks to more than 1 MiB, as a decompression bomb does"):
            attempt()
    assert not (tmp_path / "out").exists()
    assert len(read_member(path, "zeros")) == 4 << 20  # harmless where it is small


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.zip", {"zeros": bytes(1 << 20)})
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\x01\x02") + 24
    raw[at : at + 4] = struct.pack("<I", 10)  # uncompressed size
    path.write_bytes(raw)
    with pytest.raises(SourceError, match="not a whole archive"):
        read_member(path, "zeros")


@ALL
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (UnpackingLimits(total=100), "more than 100 bytes"),
        (UnpackingLimits(total=1000), "more than 1,000 bytes"),
        (UnpackingLimits(members=1), "more than 1 members"),
    ],
)
def test_limits(tmp_path: Path, make: Make, limits: UnpackingLimits, message: str) -> None:
    path = make(tmp_path / "data.bin", {"a": b"x", "b": os.urandom(3000)})
    with pytest.raises(SourceError, match=message):
        extract(path, tmp_path / "out", limits=limits)
    assert not (tmp_path / "out").exists()


def test_two_members_that_would_be_one_file_are_refused(tmp_path: Path) -> None:
    for i, names in enumerate([("aa:b", "aa_b"), ("A", "a"), ("a", "a/b"), ("./a", "a")]):
        path = zipped(tmp_path / f"{i}.zip", {name: b"" for name in names})
        with pytest.raises(SourceError, match="would be one file"):
            extract(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_content_is_left_alone(tmp_path: Path) -> None:
    path = zipped(tmp_path / "data.zip", FILES)
    (tmp_path / "out").mkdir()
    assert len(extract(path, tmp_path / "out")) == 2
    with pytest.raises(OutputError, match="not an empty folder"):
        extract(path, tmp_path / "out")


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    plain, packed, empty = tmp_path / "a.txt", tmp_path / "a.gz", tmp_path / "empty"
    plain.write_text("PK is how zip files begin\n" * 40)
    packed.write_bytes(gzip.compress(b"text\n" * 200))
    empty.write_bytes(b"")
    for path in (plain, packed, empty):
        assert archive_kind(path) == ""
        with pytest.raises(SourceError, match="neither a zip nor a tar archive"):
            list_members(path)
    with pytest.raises(SourceError, match="does not exist"):
        list_members(tmp_path / "none.zip")


def test_folders_in_an_archive_are_no_members(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        for name in (".", "./sub"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        archive.addfile(tarfile.TarInfo("./sub/a.txt"), io.BytesIO())
    assert [m.name for m in list_members(tmp_path / "data.tar")] == ["sub/a.txt"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(data=st.data(), make=st.sampled_from([zipped, tarred, tgz]))
def test_a_damaged_archive_gives_its_content_or_one_sentence(
    tmp_path: Path, data: st.DataObject, make: Make
) -> None:
    """Cut anywhere or with any byte changed: the right content, or a ``SourceError``; never another.

    A plain tar carries no checksum of its content, so there only cuts are tried.
    """
    content = {"a.txt": b"first\n" * 20, "b.txt": bytes(range(256))}
    path = make(tmp_path / "data.bin", content)
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if make is tarred or data.draw(st.booleans()):
        raw = raw[:at]
    else:
        raw[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    for name, expected in content.items():
        found, said = None, ""
        try:
            found = read_member(path, name)
        except SourceError as error:
            said = str(error)
        assert found == expected or (said and "\n" not in said)


def test_a_member_that_states_an_absurd_size_is_refused_at_once(tmp_path: Path) -> None:
    """Passing over 2^87 bytes would not end, though the file has none of them."""
    info = tarfile.TarInfo("huge")
    info.size = 2**87
    path = tmp_path / "x.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(SourceError, match="states more than"):
        list_members(path)
