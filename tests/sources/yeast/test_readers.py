"""Studies from a folder into a store, and what became of every row of every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.datasets.store import Store
from wildtype.errors import MissingFileError, SourceError
from wildtype.organism import GeneIndex
from wildtype.report.data_tables import sources_markdown
from wildtype.sources.catalogue import PROVENANCE
from wildtype.sources.yeast.datasets import RECIPES
from wildtype.sources.yeast.readers import MEASURED, READERS, ingest, survey
from wildtype.sources.yeast.strain_datasets import FITNESS_2016

AWAITING_READERS: dict[str, str] = {}
"""Files that a folder of publishers' files may hold and that no reader reads yet, and why."""


def test_studies_whose_files_are_there_are_stored(small, genes: GeneIndex, tmp_path) -> None:
    with Store.create(tmp_path / "store.duckdb") as store:
        done = {one.name: one for one in ingest(store, small.path, genes)}
        held = {study.name: study for study in store.studies()}
        assert set(done) == set(READERS)
        assert set(held) == {name for name, one in done.items() if not one.left_out}
        assert {"costanzo2010", "costanzo2016"} <= set(held)
        for name, study in held.items():
            assert study.rows == done[name].measurements > 0
            assert sorted(map(str, study.readings)) == sorted(map(str, done[name].readings))
        assert "is not in" in done["kuzmin2018"].left_out
        before = store.content_hash()
        again = list(ingest(store, small.path, genes, ["costanzo2010"]))
        assert [one.name for one in again] == ["costanzo2010"]
        assert store.content_hash() == before


def test_provenance_groups_are_of_known_studies_each_in_one_group() -> None:
    studies = [study for group in PROVENANCE.values() for study in group]
    assert set(studies) <= READERS.keys()
    assert len(set(studies)) == len(studies)
    of_costanzo = set(PROVENANCE["costanzo"])
    # Every dataset of pairs of 2010 and 2016 is of the group, by the sources of its labels; no E-MAP is.
    for name, recipe in RECIPES.items():
        pairs = name.startswith(("yeast-digenic-costanzo", "yeast-dcell"))
        assert bool(of_costanzo & set(recipe.studies)) == (pairs or name == FITNESS_2016), name


def test_a_study_that_was_asked_for_must_be_there(small, genes: GeneIndex, tmp_path: Path) -> None:
    with Store.create(tmp_path / "store.duckdb") as store:
        with pytest.raises(MissingFileError, match="is not in"):
            list(ingest(store, small.path, genes, ["kuzmin2018"]))
        with pytest.raises(SourceError, match="no study 'kuzmin1918'; known studies: kuzmin2018"):
            list(ingest(store, small.path, genes, ["kuzmin1918"]))
        assert store.studies() == ()


def test_a_damaged_file_is_an_error_and_leaves_its_study_as_it_was(small, genes: GeneIndex, tmp_path) -> None:
    with Store.create(tmp_path / "store.duckdb") as store:
        list(ingest(store, small.path, genes, ["costanzo2010"]))
        before = store.content_hash()
        name = "costanzo2010_sga_stringent_cutoff_101120.tsv.gz"
        (small.path / name).write_bytes((small.path / name).read_bytes()[:-9])
        with pytest.raises(SourceError, match=f"{name} is cut short"):
            list(ingest(store, small.path, genes))
        assert store.content_hash() == before


def test_every_row_of_every_file_is_accounted_for(small) -> None:
    found = list(survey(small.path))
    read = [one for one in found if one.report is not None]
    assert {one.name for one in found if one.group == MEASURED} == set(READERS)
    assert len(read) > 20
    for one in read:
        assert one.report is not None
        assert one.report.rows == one.report.kept + sum(one.report.dropped.values())
    shown = sources_markdown([one.to_json() for one in found])
    for one in read:
        assert f"`{one.report.file}`" in shown  # type: ignore[union-attr]
    assert "Not in the folder, and so not read: " in shown


@pytest.mark.real
@pytest.mark.slow
def test_every_real_file_is_read_by_some_reader(mirror: Path) -> None:
    read = {one.report.file for one in survey(mirror) if one.report is not None}
    unread = {path.name for path in mirror.iterdir()} - read
    # the node list of STRING 9.1 numbers the nodes of its four channels and is read with them
    assert unread - AWAITING_READERS.keys() <= {"string_v9.1_yeast_genes.txt.gz"}
    assert read & AWAITING_READERS.keys() == set()  # a file that has a reader leaves the list
