"""Reading and unpacking of publishers' zip and tar archives, without trusting the archive.

A member outside the target folder, a link, a device or an encrypted member is refused. Decompressed bytes are
counted as they arrive, because an archive can state any size.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from wildtype import unpacking
from wildtype.errors import OutputError, SourceError, WildtypeError, reason_of, shown
from wildtype.files import writing, writing_folder
from wildtype.unpacking import GZIP_MAGIC, UnpackingLimits, size_text

REMEDY = "fetch the archive again from its publisher"
CHUNK = 1 << 20
_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, EOFError, RuntimeError, ValueError,
    OverflowError, LookupError, OSError,
)  # fmt: skip
_ILLEGAL = str.maketrans({c: "_" for c in '<>:"|?*'})
"""Characters that some file systems do not allow in names; one published folder name holds a colon."""


LIMITS = replace(unpacking.LIMITS, total=8 << 30)
"""Members are unpacked to files or one at a time, and an archive of a publisher holds several large ones."""


@dataclass(frozen=True)
class Member:
    """One file of an archive: its name with ``/`` between folders, its stated size, why it is refused."""

    name: str
    size: int
    refused: str = ""

    @property
    def on_disk(self) -> str:
        """The name with ``_`` for characters that some file systems do not allow."""
        return self.name.translate(_ILLEGAL)


Opener = Callable[[], IO[bytes]]
Kind = Literal["zip", "tar", ""]


def archive_kind(path: str | Path) -> Kind:
    """Say whether a file is a zip or a (gzip-compressed) tar archive by its content, or neither (``""``)."""
    path = Path(path)
    with open(path, "rb") as handle:
        if handle.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
            return "zip"
    try:
        with _decompressed(path) as stream:
            tarfile.TarInfo.frombuf(stream.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
    except _DAMAGE:
        return ""
    return "tar"


def _decompressed(path: Path) -> IO[bytes]:
    with open(path, "rb") as handle:
        packed = handle.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path)) if packed else open(path, "rb")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn every error that a damaged archive causes in the libraries into one sentence."""
    try:
        yield
    except WildtypeError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist: {REMEDY}") from None
    except _DAMAGE as error:
        raise SourceError(f"{path} is not a whole archive ({reason_of(error)}): {REMEDY}") from error


def _inner(name: str) -> tuple[str, str]:
    """Return a member's cleaned name, and the reason if it is refused for its name (else empty)."""
    # Windows takes a backslash for a folder, so that ``..\evil`` would leave the target folder there.
    name = name.replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    # A drive letter counts on every system: the same archive must be refused everywhere.
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return name, "an absolute path"
    if ".." in parts:
        return name, "a path that leaves its folder"
    if not parts:
        return "", "a file without a name"
    # Control characters forge lines of a terminal or log; lone surrogates are bytes that were not UTF-8.
    if any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in name):
        return name, "a name with unprintable characters"
    return "/".join(parts), ""


def _filtered(info: tarfile.TarInfo, folder: Path) -> str:
    """Return why Python's data filter refuses a member of a tar archive; empty if it does not."""
    try:
        # Only the verdict counts, not the cleaned member: here an absolute path is refused instead of made
        # relative, and no mode or owner of the archive ever reaches the disk.
        tarfile.data_filter(info, str(folder))
    except tarfile.FilterError as error:
        return f"refused by Python's data filter ({reason_of(error)})"
    except (OSError, ValueError) as error:  # newer filters resolve paths strictly, and a name can be too long
        return f"a path that cannot be checked ({reason_of(error)})"
    return ""


class _Archive:
    """One pass over an archive, with every decompressed byte counted.

    ``folder`` is where members are to be unpacked; where they are only read, a folder that need not exist.
    """

    def __init__(self, path: Path, limits: UnpackingLimits, folder: Path | None = None) -> None:
        with _explained(path):
            self.path, self.limits, self.kind = path, limits, archive_kind(path)
            self.folder = folder or path.with_name(f"{path.name} unpacked")
            self.packed = path.stat().st_size
        if not self.kind:
            raise SourceError(f"{path} is neither a zip nor a tar archive: {REMEDY}")
        self.unpacked = 0

    def count(self, size: int) -> None:
        """Count decompressed bytes; raises ``SourceError`` where they are too many."""
        # Counting continues over all members, so that many small bombs are found like one large one.
        self.unpacked += size
        if self.unpacked > self.limits.total:  # also of an archive that is not compressed
            most = size_text(self.limits.total)
            raise SourceError(f"{self.path} unpacks to more than {most}, expected far less: {REMEDY}")
        self.limits.check(self.path, self.packed, self.unpacked)

    def walk(self) -> Iterator[tuple[Member, Opener]]:
        """Yield every file and a function that opens it, to be called before the next file is taken."""
        with _explained(self.path):
            walk = self._walk_zip() if self.kind == "zip" else self._walk_tar()
            for number, found in enumerate(walk, start=1):
                if number > self.limits.members:
                    raise SourceError(
                        f"{self.path} has more than {self.limits.members:,} members, expected fewer: {REMEDY}"
                    )
                yield found

    def _walk_zip(self) -> Iterator[tuple[Member, Opener]]:
        with zipfile.ZipFile(self.path) as archive:
            for info in archive.infolist():
                # The upper half of the external attributes is the Unix mode; 0 where another system packed.
                mode = info.external_attr >> 16
                name, refused = _inner(info.filename)
                if info.flag_bits & 0x1:
                    refused = "encrypted"
                elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    refused = "a link" if stat.S_ISLNK(mode) else "a device"
                # Other methods have unpackers that are seldom tested, and no publisher uses them.
                elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    refused = f"compressed by method {info.compress_type}, which is not known here"
                if not info.is_dir() or (refused and name):
                    yield Member(name, info.file_size, refused), lambda info=info: archive.open(info)  # type: ignore[misc]

    def _walk_tar(self) -> Iterator[tuple[Member, Opener]]:
        with _decompressed(self.path) as stream:
            counted: Any = _Counted(stream, self)
            # ``r|`` never seeks: every byte passes the counter once, and a header cannot point backwards.
            with tarfile.open(fileobj=counted, mode="r|", bufsize=CHUNK) as archive:
                for info in archive:
                    name, refused = _inner(info.name)
                    # Tarfile would count through a stated size, however short the file is.
                    if info.size > self.limits.total:
                        raise SourceError(
                            f"{self.path} states more than {size_text(self.limits.total)} for {shown(name)}: "
                            f"{REMEDY}"
                        )
                    if info.islnk() or info.issym():
                        refused = "a link"
                    # A sparse file unpacks to holes of any size without any byte being read.
                    elif not (info.isreg() or info.isdir()) or info.issparse():
                        refused = "a device or another special file"
                    refused = refused or _filtered(info, self.folder)
                    if not info.isdir() or (refused and name):
                        yield Member(name, info.size, refused), lambda info=info: _opened(archive, info)  # type: ignore[misc]
            while counted.read(CHUNK):  # to the end, because gzip's checksum is the last thing in the file
                pass

    def chunks(self, member: Member, opener: Opener) -> Iterator[bytes]:
        """Yield a member's content, its size checked as it comes."""
        with _explained(self.path), opener() as source:
            while chunk := source.read(CHUNK):
                if self.kind == "zip":  # the bytes of a tar stream are counted by _Counted
                    self.count(len(chunk))
                yield chunk

    def check(self, member: Member) -> None:
        """Raise ``SourceError`` if a member is not to be unpacked."""
        if member.refused:
            raise self.refusal(member, member.refused)
        if member.size > self.limits.total:
            raise self.refusal(member, f"more than {size_text(self.limits.total)} large")

    def refusal(self, member: Member, reason: str) -> SourceError:
        """Return the error for a member that is not unpacked."""
        return SourceError(f"{self.path} holds {member.name!r}, which is {reason}: not unpacked; {REMEDY}")


class _Counted(io.RawIOBase):
    """A decompressed stream that counts every byte, also those of members that are skipped."""

    def __init__(self, inner: IO[bytes], archive: _Archive) -> None:
        super().__init__()
        self._inner, self._archive = inner, archive

    def read(self, size: int = -1) -> bytes:
        data = self._inner.read(size if 0 <= size <= CHUNK else CHUNK)
        self._archive.count(len(data))
        return data


def _opened(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    source = archive.extractfile(info)
    if source is None:
        raise tarfile.ExtractError(f"{info.name} has no content")
    return source


def list_members(path: str | Path, *, limits: UnpackingLimits = LIMITS) -> list[Member]:
    """Return the files of a zip or tar archive in its order, also those that would be refused; no folders.

    Raises
    ------
    SourceError
        If the archive is missing, damaged, of another kind, or goes beyond `limits`.
    """
    return [member for member, _ in _Archive(Path(path), limits).walk()]


def _find(path: Path, wanted: str, among: list[Member]) -> Member:
    """Return the member called `wanted`, or the only one whose path ends in it."""
    name = Member(_inner(wanted)[0], 0).on_disk
    found = [member for member in among if member.on_disk == name]
    found = found or [member for member in among if member.on_disk.endswith(f"/{name}")]
    if not found:
        shown = ", ".join(repr(member.name) for member in among[:5]) or "no files"
        more = f" and {len(among) - 5:,} more" if len(among) > 5 else ""
        raise SourceError(f"{path} has no member {wanted!r}; it holds {shown}{more}: {REMEDY}")
    if len(found) > 1:
        shown = ", ".join(repr(member.name) for member in found[:3])
        raise SourceError(f"{path} has several members {wanted!r} ({shown}): give the whole path of one")
    return found[0]


def _content(path: Path, wanted: str, limits: UnpackingLimits) -> Iterator[bytes]:
    """Yield the content of one member, then read to the end of the archive, where its checksum is."""
    member = _find(path, wanted, list_members(path, limits=limits))
    archive = _Archive(path, limits)
    archive.check(member)
    for candidate, opener in archive.walk():
        if candidate == member:
            yield from archive.chunks(member, opener)


def read_member(path: str | Path, member: str, *, limits: UnpackingLimits = LIMITS) -> bytes:
    """Return the content of one member.

    Parameters
    ----------
    path : path
        A zip or tar archive, the latter plain or gzip-compressed; recognised by its content.
    member : str
        The member's path in the archive, or its end where only one member ends so.
    limits : UnpackingLimits
        What it may unpack to.

    Raises
    ------
    SourceError
        If the archive is missing or damaged, or the member is missing, encrypted, a link, too large, or has
        a path that leaves its folder.
    """
    return b"".join(_content(Path(path), member, limits))


def copy_member(
    path: str | Path, member: str, target: str | Path, *, limits: UnpackingLimits = LIMITS
) -> None:
    """Write one member to the file `target`, completely or not at all, without holding it in memory.

    Raises
    ------
    SourceError
        As `read_member`.
    OutputError
        If `target` cannot be written.
    """
    with writing(target) as temporary, open(temporary, "wb") as handle:
        for chunk in _content(Path(path), member, limits):
            handle.write(chunk)


def extract(
    path: str | Path,
    folder: str | Path,
    members: Collection[str] | None = None,
    *,
    limits: UnpackingLimits = LIMITS,
) -> list[Path]:
    """Unpack an archive into a new folder, completely or not at all, and return the files in archive order.

    Parameters
    ----------
    path : path
        A zip or tar archive.
    folder : path
        A folder that does not exist yet, or is empty.
    members : collection of str, optional
        Which members, named as for `read_member`; all of them if not given. Characters of their names that
        some file systems do not allow (a colon) become ``_``.
    limits : UnpackingLimits
        What it may unpack to.

    Raises
    ------
    SourceError
        If the archive is missing or damaged, or any wanted member is refused; nothing is unpacked then.
    OutputError
        If `folder` is not empty or cannot be written.
    """
    path, folder = Path(path), Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{str(folder)!r} is not an empty folder: choose a new one to unpack into")
    known = [member for member, _ in _Archive(path, limits, folder).walk()]
    wanted = known if members is None else [_find(path, name, known) for name in members]
    # The same folder again: the second pass recognises members by equality, which includes `refused`.
    archive = _Archive(path, limits, folder)
    for member in wanted:
        archive.check(member)
    _refuse_clashes(path, [member.on_disk for member in wanted])
    chosen, written = set(wanted), []
    with writing_folder(folder) as temporary:
        for member, opener in archive.walk():
            if member not in chosen:
                continue
            target = temporary / member.on_disk
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "wb") as handle:
                for chunk in archive.chunks(member, opener):
                    handle.write(chunk)
            written.append(folder / member.on_disk)
    return written


def _refuse_clashes(path: Path, targets: list[str]) -> None:
    """Refuse members that some file system takes for one file, or for a file and a folder of one name."""
    # Case folded: macOS and Windows take ``A`` and ``a`` for one file, so that the second would replace it.
    files = {target.casefold() for target in targets}
    folders = {str(parent).casefold() for target in targets for parent in Path(target).parents}
    if len(files) < len(targets) or files & folders:
        raise SourceError(f"{path} holds several members that would be one file: not unpacked; {REMEDY}")
