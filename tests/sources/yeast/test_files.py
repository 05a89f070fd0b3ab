"""Publishers' descriptions, and which of their files a folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.sources.publisher import RemoteFile
from wildtype.sources.yeast import files
from wildtype.sources.yeast.files import described, find_release, publisher, require_copy, study_of


def test_the_one_release_is_found_plain_or_compressed(tmp_path: Path) -> None:
    assert find_release(tmp_path, "A-", ".txt") is None
    (tmp_path / "A-4.4.1.txt.gz").touch()
    assert find_release(tmp_path, "A-", ".txt") == (tmp_path / "A-4.4.1.txt.gz", "4.4.1")
    (tmp_path / "A-4.4.1.txt").touch()
    assert find_release(tmp_path, "A-", ".txt") == (tmp_path / "A-4.4.1.txt", "4.4.1")


def test_several_releases_are_refused(tmp_path: Path) -> None:
    for name in ("A-1.txt", "A-2.txt.gz"):
        (tmp_path / name).touch()
    with pytest.raises(SourceError, match=r"holds 2 releases of A-….txt \(1, 2\): keep one"):
        find_release(tmp_path, "A-", ".txt")


def test_the_first_copy_that_is_there_is_taken(tmp_path: Path) -> None:
    copies = (RemoteFile("a.tsv", urls=("https://a.org/a.tsv",)), RemoteFile("b.tsv"))
    with pytest.raises(SourceError, match=r"a\.tsv is not in .*: fetch it from https://a\.org"):
        require_copy(tmp_path, copies)
    (tmp_path / "b.tsv").touch()
    assert require_copy(tmp_path, copies).name == "b.tsv"
    (tmp_path / "a.tsv.gz").touch()
    assert require_copy(tmp_path, copies).name == "a.tsv.gz"


def test_a_description_holds_what_its_table_says(tmp_path: Path) -> None:
    sgd = publisher("sgd")
    assert sgd.publication.doi == "10.1093/nar/gkr1029"
    assert sgd.published == {"features of type gene in R64": 6607}
    assert sgd.files[0].aliases == ("SGD_features_2020.tab.gz",)
    assert "weekly, so that no checksum" in sgd.notes[0]
    (tmp_path / "a.tsv").write_bytes(b"")
    study = study_of(sgd, [tmp_path / "a.tsv"])
    assert study.files == {"a.tsv": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    assert (study.name, study.notes, study.licence) == (sgd.name, sgd.notes, sgd.licence)


def test_two_publishers_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "KINDS", ("genes", "genes"))
    with pytest.raises(SourceError, match="two publishers are called 'sgd'"):
        described.__wrapped__()


def test_a_misspelled_key_of_a_file_is_refused() -> None:
    with pytest.raises(TypeError, match="sha265"):
        files._remote({"name": "a.tsv", "sha265": "0" * 64})
