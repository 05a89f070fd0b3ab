"""Publishers' files into a folder, from a server on this machine or fetched by hand; and verifying."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sources.server import Page, Server, serving
from tests.tiny import tiny_dataset, tiny_organism
from wildtype.datasets.records import Publication
from wildtype.datasets.storage import save_dataset
from wildtype.errors import OutputError, SourceError
from wildtype.files import cache_dir
from wildtype.locks import exclusive_lock
from wildtype.organism.storage import save_organism
from wildtype.sources import fetch as fetching
from wildtype.sources import publishers as registry
from wildtype.sources.download import INCOMING, Transport
from wildtype.sources.fetch import RECORD, Fetched, default_folder, fetch
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.verify import Verified, verify

PAIRS, OTHER = b"a\tb\t0.5\n" * 1000, b"other\n" * 100
Fetch = Callable[..., list[Fetched]]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def publisher(name: str, *files: RemoteFile) -> Publisher:
    return Publisher(name, "invented", Publication(citation="Nobody 2024"), "CC0", files)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    with serving() as running:
        yield running


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Publisher]:
    """The registry, empty: tests put publishers in."""
    table: dict[str, Publisher] = {}
    monkeypatch.setattr(registry, "publishers", lambda: table)
    return table


@pytest.fixture
def get(known: dict[str, Publisher], tmp_path: Path) -> Fetch:
    """`fetch` that reaches the server on this machine, into a folder of its own."""

    def call(*names: str, source: Path | None = None, folder: Path | None = None) -> list[Fetched]:
        transport = Transport(wait=lambda seconds: None, allow_loopback_http=True)
        return fetching._fetch(names, folder or tmp_path / "to", source, False, lambda one: None, transport)

    return call


def states(done: list[Fetched]) -> dict[str, str]:
    return {one.file: one.state for one in done}


def test_a_file_is_fetched_once(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/pairs"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("pairs.tsv", (server.url("/pairs"),), sha256(PAIRS)))
    (first,) = get("lab")
    assert (first.state, first.confirmed, first.sha256) == ("fetched", True, sha256(PAIRS))
    assert first.path is not None
    assert first.path.read_bytes() == PAIRS
    (again,) = get("lab", "lab")
    assert again == replace(first, state="already there")
    assert len(server.asked) == 1
    assert sorted(p.name for p in (tmp_path / "to").iterdir()) == [RECORD, "pairs.tsv"]


def test_a_file_without_published_checksum_is_known_by_its_record(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/pairs"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("pairs.tsv", (server.url("/pairs"),)))
    (one,) = get("lab")
    assert (one.state, one.confirmed) == ("fetched", False)
    (tmp_path / "to" / "pairs.tsv").write_bytes(b"damaged")
    (mended,) = get("lab")
    assert (mended.state, mended.remark) == ("fetched", "the file that was there did not fit its checksum")
    assert (tmp_path / "to" / "pairs.tsv").read_bytes() == PAIRS


def test_a_damaged_file_stays_until_a_fitting_one_has_come(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    known["lab"] = publisher("lab", RemoteFile("pairs.tsv", (server.url("/pairs"),), sha256(PAIRS)))
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "pairs.tsv").write_bytes(b"damaged")
    with pytest.raises(SourceError, match=r"1 of 1 files were not obtained: pairs\.tsv: .*does not fit.*404"):
        get("lab")
    assert (tmp_path / "to" / "pairs.tsv").read_bytes() == b"damaged"
    server.pages["/pairs"] = Page(PAIRS)
    assert states(get("lab")) == {"pairs.tsv": "fetched"}


def test_another_checksum_leaves_nothing(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/pairs"] = Page(OTHER)
    known["lab"] = publisher("lab", RemoteFile("pairs.tsv", (server.url("/pairs"),), sha256(PAIRS)))
    with pytest.raises(SourceError, match=f"sha256 {sha256(OTHER)}, expected {sha256(PAIRS)}"):
        get("lab")
    assert list((tmp_path / "to").iterdir()) == []


def test_the_next_address_is_tried_and_the_rest_is_fetched_all_the_same(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/mirror"] = Page(PAIRS)
    known["lab"] = publisher(
        "lab",
        RemoteFile("gone.tsv", (server.url("/gone"),)),
        RemoteFile("pairs.tsv", (server.url("/none"), server.url("/mirror"))),
    )
    seen: list[Fetched] = []
    transport = Transport(allow_loopback_http=True)
    with pytest.raises(SourceError, match=r"1 of 2 files were not obtained: gone\.tsv: .*/gone was refused"):
        fetching._fetch(["lab"], tmp_path / "to", None, False, seen.append, transport)
    assert states(seen) == {"gone.tsv": "failed", "pairs.tsv": "fetched"}


def test_one_file_of_a_publisher(known: dict[str, Publisher], get: Fetch, server: Server) -> None:
    server.pages["/pairs"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("a"), RemoteFile("b", (server.url("/pairs"),)))
    assert states(get("lab/b")) == {"b": "fetched"}


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    path = tmp_path / "made.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("Data File S1. Pairs: long/pairs.txt", PAIRS)
        made.writestr("Data File S1. Pairs: long/other.txt", OTHER)
    return path.read_bytes()


def from_archive(urls: tuple[str, ...], digest: str) -> Publisher:
    return publisher(
        "lab",
        *(
            RemoteFile(f"{name}.tsv", urls, digest, member=f"Data File S1. Pairs: long/{name}.txt")
            for name in ("pairs", "other")
        ),
    )


def test_an_archive_is_fetched_once_for_all_its_files(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path, archive: bytes
) -> None:
    server.pages["/Raw%20pairs:%20long.zip"] = Page(archive)
    known["lab"] = from_archive((server.url("/Raw%20pairs:%20long.zip"),), sha256(archive))
    done = get("lab")
    assert [(one.state, one.confirmed, one.sha256) for one in done] == [
        ("fetched", True, sha256(PAIRS)),
        ("fetched", True, sha256(OTHER)),
    ]
    assert len(server.asked) == 1
    assert sorted(p.name for p in (tmp_path / "to").iterdir()) == [RECORD, "other.tsv", "pairs.tsv"]
    assert [(one.state, one.confirmed) for one in get("lab")] == [("already there", True)] * 2
    (tmp_path / "to" / "pairs.tsv").write_bytes(b"damaged")
    assert states(get("lab")) == {"pairs.tsv": "fetched", "other.tsv": "already there"}


def test_the_checksum_may_be_that_of_the_file_in_the_archive(
    known: dict[str, Publisher], get: Fetch, server: Server, archive: bytes
) -> None:
    server.pages["/a.zip"], server.pages["/plain"] = Page(archive), Page(PAIRS)
    urls = (server.url("/none"), server.url("/plain"), server.url("/a.zip"))
    for given in (urls, urls[2:]):
        known["lab"] = publisher("lab", RemoteFile("pairs.tsv", given, sha256(PAIRS), member="pairs.txt"))
        (one,) = get("lab", folder=None)
        assert one.confirmed
        assert one.path is not None
        assert one.path.read_bytes() == PAIRS
        one.path.unlink()


def test_a_changed_archive_leaves_nothing(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path, archive: bytes
) -> None:
    server.pages["/a.zip"] = Page(archive)
    known["lab"] = from_archive((server.url("/a.zip"),), sha256(b"as it was"))
    with pytest.raises(SourceError, match="2 of 2 files were not obtained: .*it was not kept"):
        get("lab")
    assert list((tmp_path / "to").iterdir()) == []


def test_files_fetched_by_hand_are_found_under_any_name(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path, archive: bytes
) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    url = server.url("/Raw%20pairs:%20long.zip")
    for made in ("Raw pairs: long.zip", "Raw pairs_ long.zip", "Raw pairs- long.zip", "Raw pairs long.zip"):
        (hand / made).write_bytes(archive)
        known["lab"] = from_archive((url,), sha256(archive))
        done = get("lab", source=hand, folder=tmp_path / made)
        assert [(one.state, one.confirmed) for one in done] == [("copied", True)] * 2
        (hand / made).unlink()
    remote = RemoteFile("pairs.tsv", sha256=sha256(PAIRS), aliases=("S1.tsv",), gated="open it in a browser")
    known["lab"] = publisher("lab", remote)
    for made, data in (("pairs.tsv", PAIRS), ("S1.tsv", PAIRS), ("S1.tsv.gz", gzip.compress(PAIRS))):
        (hand / made).write_bytes(data)
        (one,) = get("lab", source=hand, folder=tmp_path / f"to {made}")
        assert (one.state, one.confirmed) == ("copied", True)
        assert one.path is not None
        assert one.path.read_bytes() == data
        assert remote.find(one.path.parent) == one.path
        (hand / made).unlink()
    assert server.asked == []  # nothing is downloaded beside


def test_an_alias_keeps_the_name_that_says_its_format(
    known: dict[str, Publisher], get: Fetch, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    known["lab"] = publisher("lab", RemoteFile("table.xlsx", aliases=("table.tsv", "Raw: data/table.tsv")))
    packed = gzip.compress(PAIRS)  # which holds the second in which it was made
    (hand / "table.tsv.gz").write_bytes(packed)
    (one,) = get("lab", source=hand)
    assert one.path == tmp_path / "to" / "table.tsv.gz"
    assert states(get("lab", source=hand)) == {"table.xlsx": "already there"}
    one.path.write_bytes(b"damaged")
    (mended,) = get("lab", source=hand)
    assert (mended.state, mended.path) == ("copied", one.path)
    assert one.path.read_bytes() == packed


def test_a_file_taken_out_of_an_archive_by_hand_cannot_be_confirmed(
    known: dict[str, Publisher], get: Fetch, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    (hand / "pairs.tsv").write_bytes(PAIRS)
    known["lab"] = from_archive((), sha256(b"the archive"))
    pairs, other = get("lab", source=hand)
    assert (pairs.state, pairs.confirmed, other.state) == ("copied", False, "by hand")
    assert states(get("lab", source=hand)) == {"pairs.tsv": "already there", "other.tsv": "by hand"}


def test_a_wrong_file_fetched_by_hand_is_not_copied(
    known: dict[str, Publisher], get: Fetch, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    known["lab"] = publisher("lab", RemoteFile("pairs.tsv", sha256=sha256(PAIRS)), RemoteFile("other.tsv"))
    for wrong in (OTHER, gzip.compress(OTHER), gzip.compress(PAIRS)[:-4], b""):
        (hand / "pairs.tsv").write_bytes(wrong)
        with pytest.raises(SourceError, match=r"pairs\.tsv has sha256 .*: it was not kept"):
            get("lab", source=hand)
        assert list((tmp_path / "to").iterdir()) == []


def test_what_a_person_must_do_is_said(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    gated = RemoteFile("gated.tsv", gated="open https://example.org in a browser and agree to its terms")
    known["lab"] = publisher("lab", gated)
    with pytest.raises(
        SourceError, match=r"agree to its terms; then run `wildtype data fetch lab --from FOLD"
    ):
        get("lab")
    server.pages["/a"] = Page(PAIRS)
    known["lab"] = publisher(
        "lab", gated, RemoteFile("free.tsv", (server.url("/a"),)), RemoteFile("lost.tsv")
    )
    done = get("lab")  # one of its files came: the others are remarks
    assert states(done) == {"gated.tsv": "by hand", "free.tsv": "fetched", "lost.tsv": "by hand"}
    assert "ask its publisher" in done[2].remark
    known["lab"] = publisher("lab", replace(gated, urls=(server.url("/none"),)))
    with pytest.raises(
        SourceError, match=r"/none was refused by the server \(404.*; open https://example\.org"
    ):
        get("lab")
    with pytest.raises(SourceError, match=r"holds no file 'gated\.tsv'"):
        get("lab", source=tmp_path)


@pytest.mark.parametrize("url", ["http://example.org/a", "ftp://example.org/a", "file:///etc/passwd"])
def test_other_addresses_are_refused_even_from_the_registry(
    known: dict[str, Publisher], get: Fetch, tmp_path: Path, url: str
) -> None:
    known["lab"] = publisher("lab", RemoteFile("a", (url,)), RemoteFile("b", (url,), member="b"))
    with pytest.raises(SourceError, match="2 of 2 files were not obtained: .*is refused: only https"):
        get("lab")
    with pytest.raises(SourceError, match="is not a folder of this machine"):
        fetch(["lab"], tmp_path, source=url)


def test_a_server_on_this_machine_is_out_of_reach_of_users(
    known: dict[str, Publisher], server: Server, tmp_path: Path
) -> None:
    server.pages["/a"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("a", (server.url("/a"),)))
    with pytest.raises(SourceError, match="is refused: only https"):
        fetch(["lab"], tmp_path)
    assert server.asked == []


def test_a_stopped_fetch_goes_on_where_it_stopped(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/a"] = Page(PAIRS, cut=[1000] * 4)
    known["lab"] = publisher("lab", RemoteFile("a", (server.url("/a"),), sha256(PAIRS)))
    with pytest.raises(SourceError, match="what has come so far is kept"):
        get("lab")
    assert [p.name for p in (tmp_path / "to").iterdir()] == [INCOMING]
    assert states(get("lab")) == {"a": "fetched"}
    assert server.ranges("/a")[-1] == "bytes=4000-"
    assert not (tmp_path / "to" / INCOMING).exists()


def test_one_process_at_a_time(known: dict[str, Publisher], get: Fetch, tmp_path: Path) -> None:
    known["lab"] = publisher("lab", RemoteFile("a"))
    with (
        exclusive_lock(tmp_path / "to", "fetching files into"),
        pytest.raises(OutputError, match="another process is fetching"),
    ):
        get("lab")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_is_where_files_go(known: dict[str, Publisher], tmp_path: Path, own_cache: Path) -> None:
    known["lab"] = publisher("lab", RemoteFile("a"))
    (tmp_path / "a").write_bytes(PAIRS)
    (one,) = fetch(["lab"], source=tmp_path)
    assert one.path == default_folder() / "a"
    assert one.to_json()["path"] == str(default_folder() / "a")


def test_a_damaged_record_is_only_forgotten(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path
) -> None:
    server.pages["/a"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("a", (server.url("/a"),)))
    get("lab")
    for text in ("", "{", "[]", '{"files": []}', '{"files": {"a": 1}}'):
        (tmp_path / "to" / RECORD).write_text(text)
        assert states(get("lab")) == {"a": "already there"}


# verifying


def judged(done: list[Verified]) -> dict[str, str]:
    return {one.name: one.state for one in done}


def test_every_file_is_judged(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path, own_cache: Path, archive: bytes
) -> None:
    server.pages["/a.zip"] = Page(archive)
    known["zip"] = from_archive((server.url("/a.zip"),), sha256(archive))
    known["lab"] = publisher(
        "lab", RemoteFile("sure", sha256=sha256(PAIRS)), RemoteFile("unsure"), RemoteFile("packed.gz")
    )
    get("zip")
    to = tmp_path / "to"
    (to / "sure.gz").write_bytes(gzip.compress(PAIRS))
    (to / "unsure").write_bytes(PAIRS)
    (to / "packed.gz").write_bytes(gzip.compress(PAIRS))
    (to / "sub").mkdir()
    (to / "sub" / "whatever.txt").write_bytes(b"")
    done = verify(to)
    assert judged(done) == {
        "other.tsv": "ok",
        "pairs.tsv": "ok",
        "sure.gz": "ok",
        "unsure": "not known",
        "packed.gz": "not known",
        "sub/whatever.txt": "not known",
    }
    assert {one.name: one.publisher for one in done}["sub/whatever.txt"] == ""
    (to / "pairs.tsv").write_bytes(b"damaged")
    (to / "sure.gz").write_bytes(gzip.compress(OTHER))
    (to / "packed.gz").write_bytes(gzip.compress(PAIRS)[:-6])
    damaged = {one.name: one.remark for one in verify(to) if one.state == "damaged"}
    assert set(damaged) == {"pairs.tsv", "sure.gz", "packed.gz"}
    assert sha256(PAIRS) in damaged["sure.gz"]


def test_an_unchanged_file_without_published_checksum(
    known: dict[str, Publisher], get: Fetch, server: Server, tmp_path: Path, own_cache: Path
) -> None:
    server.pages["/a"] = Page(PAIRS)
    known["lab"] = publisher("lab", RemoteFile("a", (server.url("/a"),)))
    get("lab")
    assert judged(verify(tmp_path / "to")) == {"a": "unchanged"}
    (tmp_path / "to" / "a").write_bytes(PAIRS[:-1])
    assert judged(verify(tmp_path / "to")) == {"a": "damaged"}


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_datasets_and_organisms_in_the_cache_are_hashed_again(
    known: dict[str, Publisher], own_cache: Path
) -> None:
    save_organism(tiny_organism(), cache_dir() / "organisms" / "tiny")
    for place in ("a", "b", "queries/0123456789abcdef"):
        save_dataset(tiny_dataset(), cache_dir() / "datasets" / place)
    assert judged(verify()) == {"tiny": "ok", "a": "ok", "b": "ok", "queries/0123456789abcdef": "ok"}
    os.truncate(cache_dir() / "datasets" / "a" / "table.npz", 100)
    edit(cache_dir() / "datasets" / "b" / "dataset.json", lambda record: record.update(sha256="0" * 64))
    save_dataset(tiny_dataset(), cache_dir() / "datasets" / "c")
    (cache_dir() / "datasets" / "c" / "dataset.json").write_text("[]")
    (cache_dir() / "organisms" / "tiny" / "organism.json").write_text("{")
    assert judged(verify()) == {
        "tiny": "damaged",
        "a": "damaged",
        "b": "damaged",
        "c": "damaged",
        "queries/0123456789abcdef": "ok",
    }


def test_nothing_to_verify(known: dict[str, Publisher], own_cache: Path, tmp_path: Path) -> None:
    assert verify() == []
    with pytest.raises(SourceError, match="is not a folder"):
        verify(tmp_path / "none")
