"""Download of one file: https only, resumed after an interruption, checked before it gets its name.

An unfinished download stays beside its target, in the folder ``.incoming``, with a note of its address and
version. It is resumed only if the server confirms that the content is unchanged, or if a checksum is known.
Otherwise the download starts again.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from wildtype.errors import OutputError, SourceError
from wildtype.files import sha256_of_file, write_json, writing

if TYPE_CHECKING:
    import requests

LARGEST = 4 << 30
"""Largest download in bytes; the largest known file of a publisher has 0.5 GiB."""
INCOMING = ".incoming"
AGENT = "wildtype (research software; downloads published data files)"
WAITS = (1.0, 3.0, 8.0)
"""Seconds before each further attempt; an attempt that brought at least one piece is not counted."""
LONGEST_WAIT = 60.0
"""Seconds that a server can make the program wait with ``Retry-After``."""
REDIRECTS = 10
TIMEOUTS = (20.0, 60.0)
"""Seconds to connect, and between two pieces of an answer."""
CHUNK = 1 << 20
LOOPBACK = ("127.0.0.1", "::1", "localhost")

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and the total (None: not known)."""


def no_progress(done: int, total: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Transport:
    """Limits and waits of downloads.

    Attributes
    ----------
    limit : int
        Largest download in bytes.
    wait : callable
        Waits for a number of seconds.
    allow_loopback_http : bool
        Whether http to this machine is allowed. Only for tests with a local server: no command and no
        environment variable sets it.
    """

    limit: int = LARGEST
    wait: Callable[[float], None] = time.sleep
    allow_loopback_http: bool = False


class _Interrupted(Exception):
    """An attempt that may succeed when it is repeated."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def check_url(url: str, *, allow_loopback_http: bool = False) -> None:
    """Raise ``SourceError`` unless `url` is an https address of a host, without user name or password."""
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname, parts.scheme.lower()
        # A password in an address would end up in records and messages; port 0 fits no server.
        fits = bool(host) and parts.username is None and parts.password is None and (parts.port or 1) > 0
    except ValueError:
        fits, host, scheme = False, None, ""
    # Control characters and blanks could forge a second header or line (CRLF injection).
    local = allow_loopback_http and scheme == "http" and host in LOOPBACK
    if not fits or not (scheme == "https" or local) or any(ord(c) <= 32 or ord(c) == 127 for c in url):
        raise SourceError(
            f"the address {url!r} is refused: only https addresses are fetched; fetch the file by hand and "
            f"give its folder with --from"
        )


class Downloader:
    """Downloads a file piece by piece in the way that pooch calls a downloader.

    Parameters
    ----------
    part : path
        Where the unfinished file is kept; beside it, a ``.json`` file has its address and version.
    checked : bool
        Whether a checksum is compared afterwards, so that a part of unknown version may be resumed too.
    agent : str
        User agent to send; empty for that of this package.
    progress : callable
        Called after every piece.
    transport : Transport
        How servers are dealt with.

    Attributes
    ----------
    resumed : bool
        Whether the last file was resumed from an earlier part.
    sha256 : str
        Of the last file.
    """

    def __init__(
        self,
        part: Path,
        *,
        checked: bool = False,
        agent: str = "",
        progress: Progress = no_progress,
        transport: Transport | None = None,
    ) -> None:
        self.part, self.checked, self.progress = part, checked, progress
        self.transport = transport or Transport()
        self.agent = agent or AGENT
        self.resumed, self.sha256 = False, ""

    @property
    def _note(self) -> Path:
        return self.part.with_name(f"{self.part.name}.json")

    def __call__(self, url: str, output_file: str | os.PathLike[str], pooch: Any = None) -> None:
        """Download `url` to `output_file`; raises ``SourceError``, or ``OutputError`` if it cannot write."""
        import requests

        self.resumed, failed = False, 0
        with requests.Session() as session:  # some hosts set a cookie in a redirect and require it after
            while True:
                before = self._size()
                try:
                    self._attempt(url, session)
                    break
                except _Interrupted as stop:
                    # An unstable connection still finishes: only attempts without progress count.
                    failed = 0 if self._size() - before >= CHUNK else failed + 1
                    if failed > len(WAITS):
                        raise SourceError(
                            f"{url} could not be fetched in {failed} attempts ({stop}): try again later; "
                            f"what has come so far is kept"
                        ) from None
                    self.transport.wait(max(WAITS[max(failed - 1, 0)], stop.wait))
        with _writable(self.part):
            # Renamed only after the last byte: no reader ever finds half a file under the final name.
            os.replace(self.part, output_file)
            self._note.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove an unfinished part."""
        self.part.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _attempt(self, url: str, session: requests.Session) -> None:
        import requests
        import urllib3

        start, note = self._begun(url)
        # No transport compression: ranges, lengths and checksums refer to the bytes of the published file.
        headers = {"User-Agent": self.agent, "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            # If-Range: the server sends the rest if the content is unchanged, else the complete new file.
            if note.get("version"):
                headers["If-Range"] = note["version"]
        try:
            with self._answer(url, headers, session) as answer:
                self._take(url, answer, start, note)
        # SSLError is also a RequestException; a host that cannot be trusted is never tried again.
        except requests.exceptions.SSLError as error:
            raise SourceError(
                f"{url} was not fetched: the host cannot be trusted ({_reason(error)})"
            ) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _Interrupted(_reason(error)) from error

    def _begun(self, url: str) -> tuple[int, dict[str, Any]]:
        """Return the bytes of `url` that are there and can be resumed, and the note about them."""
        try:
            note: dict[str, Any] = json.loads(self._note.read_text(encoding="utf-8"))
            size = self._size()
            # With neither version nor checksum, halves of two releases could be joined unnoticed.
            if note["url"] == url and size and (note["version"] or self.checked):
                return size, note
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, {}

    def _answer(self, url: str, headers: dict[str, str], session: requests.Session) -> requests.Response:
        """Return the response after redirects, each of which must lead to an allowed address."""
        here = url
        for _ in range(REDIRECTS):
            check_url(here, allow_loopback_http=self.transport.allow_loopback_http)
            # requests would follow a redirect to plain http by itself; here every address is checked first.
            answer = session.get(here, headers=headers, timeout=TIMEOUTS, stream=True, allow_redirects=False)
            if not answer.is_redirect:
                return answer
            here = urljoin(here, answer.headers["location"])
            answer.close()
        raise SourceError(f"{url} redirects more than {REDIRECTS} times: fetch the file by hand")

    def _take(self, url: str, answer: requests.Response, start: int, note: dict[str, Any]) -> None:
        status = answer.status_code
        # 416, range not satisfiable: either every byte had arrived before, or the file has shrunk.
        if status == 416 and start:
            if _content_range(answer)[1] == start == note.get("total"):
                self.resumed, self.sha256 = True, sha256_of_file(self.part)  # nothing was missing
                return
            self.forget()
            raise _Interrupted("the unfinished part does not fit the file any more")
        # Too many requests, and errors of the server, pass; other refusals do not.
        if status == 429 or status >= 500:
            raise _Interrupted(f"the server answered {status} {answer.reason}", _retry_after(answer))
        if status not in (200, 206):
            raise SourceError(f"{url} was refused by the server ({status} {answer.reason})")
        # Hosts that want a browser answer 200 with a login or captcha page, which is no data file.
        if "html" in answer.headers.get("content-type", "") and not urlsplit(url).path.endswith(
            (".html", ".htm")
        ):
            raise SourceError(f"{url} gave a web page instead of a file: the host asks for a browser")
        if status == 206:
            first, total = _content_range(answer)
            # A range that begins elsewhere, or of a file of another length, would corrupt the file silently.
            if first != start or (total and note.get("total") and total != note["total"]):
                self.forget()
                raise _Interrupted("the server continued with another part than was asked for")
            total = total or (start + length if (length := _length(answer)) is not None else None)
        else:  # 200: the server ignores ranges or the content has changed, so that the part is overwritten
            start, total = 0, _length(answer)
        self._refuse_size(url, total or 0)
        self.resumed = start > 0
        with _writable(self.part):
            self.part.parent.mkdir(parents=True, exist_ok=True)
            handle = open(self.part, "r+b" if start else "wb")  # noqa: SIM115 (closed below)
        with handle:
            if not start:
                # Written before the first byte, so that no part exists without its version.
                write_json(self._note, {"url": url, "version": _version(answer), "total": total})
            done = handle.seek(0, os.SEEK_END)
            self.progress(done, total)
            # The raw stream, counted piece by piece: a stated length proves nothing.
            for piece in answer.raw.stream(CHUNK, decode_content=False):
                done += len(piece)
                self._refuse_size(url, done)
                with _writable(self.part):
                    handle.write(piece)
                self.progress(done, total)
        # A connection that closes early looks like the end of the file.
        if total is not None and done != total:
            raise _Interrupted(f"{done:,} of {total:,} bytes came")
        self.sha256 = sha256_of_file(self.part)

    def _refuse_size(self, url: str, size: int) -> None:
        if size > self.transport.limit:
            self.forget()
            raise SourceError(
                f"{url} is larger than {self.transport.limit / 2**20:,.0f} MiB, expected less: not fetched"
            )


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"cannot write {str(path)!r} ({error.strerror or error}): free some space or choose another place"
        ) from error


def _reason(error: Exception) -> str:
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
    return f"{type(error).__name__}: {' '.join(str(inner).split())[:120]}"


def _length(answer: requests.Response) -> int | None:
    value = answer.headers.get("content-length", "")
    return int(value) if value.isascii() and value.isdigit() else None


def _content_range(answer: requests.Response) -> tuple[int, int | None]:
    """Return first byte (-1: none) and total of a ``Content-Range`` such as ``bytes 5-9/10``."""
    unit, _, rest = answer.headers.get("content-range", "").partition(" ")
    span, _, total = rest.partition("/")
    first = span.partition("-")[0]
    if unit != "bytes":
        return -1, None
    return int(first) if first.isdigit() else -1, int(total) if total.isdigit() else None


def _version(answer: requests.Response) -> str:
    """Return the version of the content in the form that ``If-Range`` accepts; empty if there is none."""
    tag = answer.headers.get("etag", "")
    # A weak tag (``W/"..."``) allows other bytes with the same meaning; RFC 9110 forbids it in If-Range.
    return tag if tag.startswith('"') else answer.headers.get("last-modified", "")


def _retry_after(answer: requests.Response) -> float:
    value = answer.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_WAIT)
    with contextlib.suppress(ValueError, TypeError):
        return min(max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0), LONGEST_WAIT)
    return 0.0


def download(
    url: str,
    target: str | Path,
    *,
    sha256: str = "",
    agent: str = "",
    staging: Path | None = None,
    progress: Progress = no_progress,
    transport: Transport | None = None,
) -> str:
    """Download one file and return its SHA-256.

    Parameters
    ----------
    url : str
        An https address.
    target : path
        Path of the file after it is complete and its checksum fits.
    sha256 : str
        Expected checksum; empty where none is known.
    agent : str
        User agent, where the host refuses the default one.
    staging : path, optional
        Folder of unfinished downloads, on the same file system; ``.incoming`` beside `target` if not given.
    progress, transport
        See `Downloader`.

    Raises
    ------
    SourceError
        If the address is refused, the server does not give the file, it is too large, or its checksum
        differs; nothing is left at `target` then.
    OutputError
        If it cannot be written.
    """
    import pooch  # type: ignore[import-untyped]

    transport, target = transport or Transport(), Path(target)
    check_url(url, allow_loopback_http=transport.allow_loopback_http)
    key = hashlib.sha256(url.encode()).hexdigest()[:12]
    staging = staging or target.parent / INCOMING
    part = staging / f"{key}.part"
    downloader = Downloader(part, checked=bool(sha256), agent=agent, progress=progress, transport=transport)
    known = f"sha256:{sha256}" if sha256 else None
    whole = staging / key
    # If a resumed file misses its checksum, the old part may be at fault: once more from the first byte.
    for last in (False, True):
        with _quiet(pooch.get_logger()), _writable(staging):
            whole.unlink(missing_ok=True)
            try:
                pooch.retrieve(url, known, fname=key, path=staging, downloader=downloader)
                break
            except ValueError as error:
                if isinstance(error, SourceError):
                    raise
                if last or not downloader.resumed:
                    raise SourceError(
                        f"{url} gave a file with sha256 {downloader.sha256}, expected {sha256}: it was not "
                        f"kept; the publisher may have changed it, or something on the way has"
                    ) from None
    with writing(target) as temporary:
        os.replace(whole, temporary)
    with contextlib.suppress(OSError):  # other unfinished parts may be there
        staging.rmdir()
    return downloader.sha256


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from reporting on the terminal what is reported here."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
