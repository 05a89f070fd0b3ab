"""The registry of publishers: complete, unambiguous, and nothing in it that a download would refuse."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.sources import yeast
from wildtype.sources.download import check_url
from wildtype.sources.publisher import Publisher
from wildtype.sources.publishers import find_publisher, owners, publishers, select

ALL = list(publishers().values())
each = pytest.mark.parametrize("publisher", ALL, ids=lambda publisher: publisher.name)


@each
def test_a_publisher_says_what_it_is(publisher: Publisher) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", publisher.name)
    assert publisher.title
    assert publisher.licence
    assert publisher.publication.citation
    assert publisher.files
    assert all(count > 0 for count in publisher.published.values())


@each
def test_its_files_can_be_fetched_or_it_is_said_how(publisher: Publisher) -> None:
    for remote in publisher.files:
        for url in remote.urls:
            check_url(url)
        assert re.fullmatch(r"[0-9a-f]{64}|", remote.sha256)
        assert remote.urls or remote.gated, f"{remote.name}: neither an address nor what a person does"
        assert remote.name == Path(remote.name).name
        for name in remote.aliases:  # an archive's folder may be part of it
            assert not Path(name).is_absolute()
            assert ".." not in Path(name).parts


def test_no_name_stands_for_two_contents() -> None:
    contents: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    for publisher in ALL:
        for remote in publisher.files:
            for name in (remote.name, *remote.aliases):
                contents.setdefault(name, set()).add((remote.urls, remote.sha256))
    assert {name: content for name, content in contents.items() if len(content) > 1} == {}


def test_every_publisher_is_read_by_some_module_and_every_one_read_is_described() -> None:
    found = set()
    for info in pkgutil.walk_packages(yeast.__path__, f"{yeast.__name__}."):
        for value in vars(import_module(info.name)).values():
            for publisher in value if isinstance(value, tuple) else (value,):
                if isinstance(publisher, Publisher):
                    found.add(publisher.name)
    assert found == set(publishers())


def test_unknown_names_are_answered_with_known_ones() -> None:
    with pytest.raises(SourceError, match="no publisher 'strng'; did you mean string"):
        find_publisher("strng")
    with pytest.raises(SourceError, match="no publisher 'zzz'; known publishers: .*string"):
        find_publisher("zzz")
    with pytest.raises(SourceError, match="publisher 'string' has no file 'x'; it has .*4932"):
        select("string/x")


def test_one_file_can_be_selected_and_its_owner_found() -> None:
    publisher = find_publisher("string")
    name = publisher.files[0].name
    assert select(f"string/{name}") == (publisher, (publisher.files[0],))
    assert select("string") == (publisher, publisher.files)
    assert (
        owners(f"some/folder/{name}") == owners(name.removesuffix(".gz")) == [(publisher, publisher.files[0])]
    )
    assert owners("unheard-of.txt") == []
