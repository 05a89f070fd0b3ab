"""Downloads from a server on this machine: continued, checked, and refused where they must be."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.server import Page, Server, serving
from wildtype.errors import OutputError, SourceError
from wildtype.sources.download import INCOMING, WAITS, Transport, check_url, download

CONTENT = os.urandom(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    with serving() as running:
        yield running


@pytest.fixture
def waited() -> list[float]:
    return []


@pytest.fixture
def transport(waited: list[float]) -> Transport:
    return Transport(wait=waited.append, allow_loopback_http=True)


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_comes_whole_and_nothing_else_stays(
    tmp_path: Path, server: Server, transport: Transport, waited: list[float]
) -> None:
    server.pages["/a.tsv"] = Page(CONTENT)
    seen: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> None:
        seen.append((done, total))

    target = tmp_path / "sub" / "a.tsv"
    found = download(server.url("/a.tsv"), target, sha256=SHA256, progress=progress, transport=transport)
    assert found == SHA256
    assert target.read_bytes() == CONTENT
    assert sorted(p.name for p in (tmp_path / "sub").iterdir()) == ["a.tsv"]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert waited == []


def test_a_broken_download_is_continued_where_it_broke_off(
    tmp_path: Path, server: Server, transport: Transport, waited: list[float]
) -> None:
    server.pages["/a"] = Page(CONTENT, cut=[100_000, 50_000])
    download(server.url("/a"), tmp_path / "a", transport=transport)
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert server.ranges("/a") == ["", "bytes=100000-", "bytes=150000-"]
    assert waited == [WAITS[0], WAITS[1]]


def test_a_part_of_an_earlier_call_is_continued(tmp_path: Path, server: Server, transport: Transport) -> None:
    server.pages["/a"] = Page(CONTENT, cut=[1000, 1000, 1000, 1000])
    with pytest.raises(SourceError, match=r"could not be fetched in 4 attempts \(.*\): try again later"):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    assert not (tmp_path / "a").exists()
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256
    assert server.ranges("/a")[-1] == "bytes=4000-"
    assert left(tmp_path) == ["a"]


def test_a_server_without_ranges_gives_it_all_again(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(CONTENT, ranges=False, cut=[1000])
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256
    assert server.ranges("/a") == ["", "bytes=1000-"]


def test_a_file_that_changed_meanwhile_starts_over(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(b"old" * 10_000, cut=[1000] * 4)
    with pytest.raises(SourceError):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    server.pages["/a"] = Page(CONTENT, etag='"v2"')
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256


@pytest.mark.parametrize("sha256", ["", SHA256], ids=["without a checksum", "with a checksum"])
def test_a_part_without_a_version_is_continued_only_if_a_checksum_will_tell(
    tmp_path: Path, server: Server, transport: Transport, sha256: str
) -> None:
    server.pages["/a"] = Page(b"old" * 100_000, etag="", cut=[1000] * 5)
    with pytest.raises(SourceError):
        download(server.url("/a"), tmp_path / "a", sha256=sha256, transport=transport)
    server.pages["/a"] = Page(CONTENT, etag="")
    server.asked.clear()
    assert download(server.url("/a"), tmp_path / "a", sha256=sha256, transport=transport) == SHA256
    # with a checksum the old part is tried, found out, and all is fetched anew
    assert server.ranges("/a") == (["bytes=4000-", ""] if sha256 else [""])


def test_a_part_that_is_already_whole_is_taken(tmp_path: Path, server: Server, transport: Transport) -> None:
    server.pages["/a"] = Page(CONTENT, cut=[1000] * 4)
    with pytest.raises(SourceError):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    (part,) = (tmp_path / INCOMING).glob("*.part")
    part.write_bytes(CONTENT)
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256
    assert server.ranges("/a")[-1] == f"bytes={len(CONTENT)}-"


def test_a_part_longer_than_the_file_starts_over(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(CONTENT, cut=[1000] * 4)
    with pytest.raises(SourceError):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    (part,) = (tmp_path / INCOMING).glob("*.part")
    part.write_bytes(CONTENT + b"more")
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256


def test_a_damaged_note_starts_over(tmp_path: Path, server: Server, transport: Transport) -> None:
    server.pages["/a"] = Page(CONTENT, cut=[1000] * 4)
    with pytest.raises(SourceError):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    (note,) = (tmp_path / INCOMING).glob("*.json")
    assert json.loads(note.read_text())["total"] == len(CONTENT)
    note.write_text("{")
    assert download(server.url("/a"), tmp_path / "a", transport=transport) == SHA256
    assert server.ranges("/a")[-1] == ""


def test_another_checksum_keeps_nothing(tmp_path: Path, server: Server, transport: Transport) -> None:
    server.pages["/a"] = Page(b"changed")
    (tmp_path / "a").write_bytes(b"what was there")
    with pytest.raises(
        SourceError, match=f"gave a file with sha256 [0-9a-f]{{64}}, expected {SHA256}"
    ) as error:
        download(server.url("/a"), tmp_path / "a", sha256=SHA256, transport=transport)
    assert "\n" not in str(error.value)
    assert left(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"what was there"


def test_busy_servers_are_asked_again(
    tmp_path: Path, server: Server, transport: Transport, waited: list[float]
) -> None:
    server.pages["/a"] = Page(CONTENT, status=[503, 429], headers={"Retry-After": "5"})
    download(server.url("/a"), tmp_path / "a", transport=transport)
    assert waited == [5.0, 5.0]
    server.pages["/b"] = Page(CONTENT, status=[503] * 4, headers={"Retry-After": "100000"})
    waited.clear()
    with pytest.raises(SourceError, match="in 4 attempts .the server answered 503"):
        download(server.url("/b"), tmp_path / "b", transport=transport)
    assert waited == [60.0] * 3


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(
    tmp_path: Path, server: Server, transport: Transport, waited: list[float], status: int
) -> None:
    server.pages["/a"] = Page(status=[status])
    with pytest.raises(SourceError, match=rf"/a was refused by the server \({status}"):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    assert waited == []
    assert left(tmp_path) == []


def test_a_web_page_in_place_of_a_file_is_refused(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(b"<html>are you a robot?", headers={"Content-Type": "text/html; charset=utf-8"})
    with pytest.raises(SourceError, match="gave a web page instead of a file"):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    assert left(tmp_path) == []


@pytest.mark.parametrize("stated", [True, False])
def test_more_than_the_limit_is_refused(tmp_path: Path, server: Server, stated: bool) -> None:
    server.pages["/a"] = Page(CONTENT * 8, length=stated)
    small = Transport(limit=1 << 20, allow_loopback_http=True)
    with pytest.raises(SourceError, match="/a is larger than 1 MiB, expected less: not fetched"):
        download(server.url("/a"), tmp_path / "a", transport=small)
    assert left(tmp_path) == []


def test_redirects_are_followed_to_allowed_places_only(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(CONTENT)
    server.pages["/moved"] = Page(redirect="/a")
    assert download(server.url("/moved"), tmp_path / "a", transport=transport) == SHA256
    for place in ("http://example.org/a", "ftp://example.org/a", "file:///etc/passwd"):
        server.pages["/out"] = Page(redirect=place)
        with pytest.raises(SourceError, match=f"the address '{place}' is refused"):
            download(server.url("/out"), tmp_path / "b", transport=transport)
    server.pages["/round"] = Page(redirect="/round")
    with pytest.raises(SourceError, match="redirects more than 10 times"):
        download(server.url("/round"), tmp_path / "b", transport=transport)
    assert left(tmp_path) == ["a"]


def test_the_user_agent_can_be_chosen(tmp_path: Path, server: Server, transport: Transport) -> None:
    server.pages["/a"] = Page(CONTENT, agent="Mozilla/5.0")
    with pytest.raises(SourceError, match="403"):
        download(server.url("/a"), tmp_path / "a", transport=transport)
    assert download(server.url("/a"), tmp_path / "a", agent="Mozilla/5.0", transport=transport) == SHA256
    assert server.asked[0][2].startswith("wildtype")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a",
        "ftp://example.org/a",
        "file:///etc/passwd",
        "/etc/passwd",
        "example.org/a",
        "",
        "https://",
        "https:///a",
        "https://user:secret@example.org/a",
        "https://user@example.org/a",
        "https://example.org/a b",
        "https://example.org/a\nHost: b",
        "javascript:alert(1)",
        "data:,a",
        "https://[::1/a",
        "https://example.org:99999/a",
        "http://127.0.0.1/a",
    ],
)
def test_only_https_addresses_are_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(SourceError, match="is refused: only https addresses are fetched"):
        check_url(url)
    with pytest.raises(SourceError, match="is refused"):
        download(url, tmp_path / "a")
    assert left(tmp_path) == []


def test_even_tests_reach_http_on_this_machine_only() -> None:
    check_url("https://example.org/Raw%20data:%20Pairs.zip")
    check_url("http://127.0.0.1:80/a", allow_loopback_http=True)
    for url in ("http://example.org/a", "http://127.0.0.1.example.org/a", "http://10.0.0.1/a"):
        with pytest.raises(SourceError):
            check_url(url, allow_loopback_http=True)


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, server: Server, transport: Transport
) -> None:
    server.pages["/a"] = Page(CONTENT)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        download(server.url("/a"), tmp_path / "file" / "a", transport=transport)
