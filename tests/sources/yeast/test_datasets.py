"""The datasets of single and double mutants: what a row is, and that every row of the files is counted."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from tests.command import wildtype
from tests.sources.yeast.screens import test_diazmejia2018, test_jonikas2009, test_tau_sga
from tests.sources.yeast.stored import build, rows, stored
from wildtype.datasets import Dataset
from wildtype.errors import ConfigError, DatasetError, SourceError
from wildtype.organism import Organism
from wildtype.seeds import generator
from wildtype.sources import catalogue
from wildtype.sources.yeast import RECIPES, build_dataset
from wildtype.sources.yeast.pair_datasets import (
    CHROMATIN_2016,
    COLLINS_2007,
    DIGENIC_2010,
    DIGENIC_2016,
    FULL_2016,
    GIS_2018,
    REPAIR_2016,
    SCHULDINER_2005,
    STRINGENT_2010,
    TAU_SGA,
    UPR_2009,
)
from wildtype.sources.yeast.readers import READERS
from wildtype.sources.yeast.screens.costanzo2010 import INTERMEDIATE, RAW_TABLE, STRINGENT
from wildtype.sources.yeast.screens.costanzo2016 import FILES
from wildtype.sources.yeast.screens.single_fitness import FITNESS
from wildtype.sources.yeast.strain_datasets import CONDITIONS_2021, FITNESS_2016, MORPHOLOGY_2020
from wildtype.sources.yeast.traits.single_deletions import STUDIES, measured_as

NAMES = (DIGENIC_2010, STRINGENT_2010, DIGENIC_2016, FITNESS_2016)
SGA = "SGA double-mutant selection medium"
FITNESS_OF_CROSS = "\t0.9\t0.1\t1.0\t0.1\t0.7\t0.1"
"""The further columns of a row of the raw table of 2010."""
WEAK = ["YAL005C\tSSA1\tYAL002W\tVPS8\t-0.11\t0.03\t0.001", "YAL005C\tSSA1\tYEL009C\tGCN4\t-0.5\t0.3\t0.06"]
"""Rows that the stringent list does not have; the first is in the intermediate one."""


def test_the_catalogue_knows_every_recipe() -> None:
    assert tuple(RECIPES) == tuple(name for name, o in catalogue.DATASETS.items() if o == "yeast")


@pytest.mark.slow
@pytest.mark.parametrize("alleles", ["averaged", "apart"])
@pytest.mark.parametrize(
    ("name", "lines"),
    [(DIGENIC_2010, 10), (STRINGENT_2010, 10), (DIGENIC_2016, 7), (REPAIR_2016, 7), (FITNESS_2016, 24)],
)
def test_every_row_of_the_files_is_kept_or_counted(
    small, organism: Organism, name: str, lines: int, alleles: str
) -> None:
    dataset = build(name, small.path, organism, alleles=alleles)
    assert dataset.name == name
    assert len(dataset) + sum(dataset.excluded.values()) == lines
    assert f"{lines} rows read" in " ".join(dataset.notes)
    assert (dataset.stages[0].rows_in, dataset.stages[-1].rows_out) == (lines, len(dataset))
    for first, second in zip(dataset.stages, dataset.stages[1:], strict=False):
        assert first.rows_out == second.rows_in


@pytest.mark.parametrize("name", [DIGENIC_2010, STRINGENT_2010])
def test_digenic_2010_merges_orientations_and_alleles_and_keeps_kinds(
    small, organism: Organism, name: str
) -> None:
    small.replace(STRINGENT, "YAL001C_tsq99\tTFC3", "YAL001C_tsq99\ttfc3-2")
    dataset = build(name, small.path, organism)
    assert rows(dataset) == pytest.approx(
        {
            ("YAL001C,YAL002W", "reduced,absent", SGA): -0.3,
            ("YAL001C,YDL227C", "reduced,absent", SGA): 0.25,
            ("YAL002W,YAL003W", "absent,absent", SGA): -0.3,
            ("YAL002W,YAR042W", "absent,absent", SGA): -0.3,
            ("YAL002W,YDL227C", "absent,absent", SGA): -0.2,
        }
    )
    assert dataset.phenotypes[0].source == "costanzo2010:epsilon"
    assert dataset.phenotypes[0].min_order == 2
    assert dataset.single_fitness is not None
    assert dataset.single_fitness[organism.genes.find("VPS8")] == pytest.approx(0.9)
    assert dataset.single_fitness_source == "costanzo2016:fitness"
    apart = build(name, small.path, organism, alleles="apart")
    assert len(apart) == len(dataset) + 1
    assert dataset.policies["alleles"].startswith("averaged: ")
    assert apart.policies["alleles"].startswith("apart: ")


def test_digenic_2016_reduces_essential_genes_without_a_deletion_strain(small, organism: Organism) -> None:
    dataset = build(DIGENIC_2016, small.path, organism)
    assert rows(dataset)["YAL001C,YDL227C", "reduced,absent", SGA] == pytest.approx(0.01)
    small.replace(FITNESS, "YAL001C_damp174\tYAL001C\ttfc3_damp", "YAL001C_sn174\tYAL001C\ttfc3")
    dataset = build(DIGENIC_2016, small.path, organism)
    assert rows(dataset)["YAL001C,YDL227C", "absent,absent", SGA] == pytest.approx(0.01)
    assert any("reduced if it is essential" in note for note in dataset.notes)
    assert dataset.excluded["merged: duplicate entry (same value and sd)"] == 1


def test_fitness_keeps_no_measurement_twice(small, organism: Organism) -> None:
    dataset = build(FITNESS_2016, small.path, organism)
    assert rows(dataset) == pytest.approx(
        {
            ("YAL001C", "reduced", f"{SGA}, 30 °C"): 0.884,
            ("YAL001C", "reduced", f"{SGA}, 26 °C"): 0.8658,
            ("YAL002W", "absent", f"{SGA}, 30 °C"): 0.9,
            ("YAL002W", "reduced", f"{SGA}, 30 °C"): 0.5,
            ("YAR042W", "absent", f"{SGA}, 30 °C"): 1.01,
            ("YFL039C", "reduced", f"{SGA}, 30 °C"): 0.6,
        },
        abs=1e-6,
    )
    assert dataset.conditions == (f"{SGA}, 30 °C", f"{SGA}, 26 °C")
    assert dataset.excluded["strain with a suppressor mutation"] == 2


@pytest.mark.slow
def test_the_raw_table_gives_the_dataset_of_its_thresholded_part(small, organism: Organism) -> None:
    """The raw table is written by hand in its published layout: what is not significant is left out."""
    expected = build(STRINGENT_2010, small.path, organism)
    crosses = [line + FITNESS_OF_CROSS for line in small.text(STRINGENT).splitlines()]
    crosses += [line + FITNESS_OF_CROSS for line in WEAK]
    small.write(RAW_TABLE.name, "\n".join(crosses) + "\n")
    small.remove(STRINGENT)
    dataset = build(STRINGENT_2010, small.path, organism)
    assert dataset.sha256 == expected.sha256
    assert dataset.excluded["score between the cut-offs of the list"] == 2
    assert len(dataset) + sum(dataset.excluded.values()) == 12


@pytest.mark.slow
def test_the_raw_table_gives_the_rows_of_the_intermediate_list_and_a_narrower_grid(
    small, organism: Organism
) -> None:
    small.write(INTERMEDIATE, small.text(STRINGENT) + WEAK[0] + "\n")
    listed = build(DIGENIC_2010, small.path, organism)
    assert listed.stages[0].policy == INTERMEDIATE
    crosses = [line + FITNESS_OF_CROSS for line in [*small.text(STRINGENT).splitlines(), *WEAK]]
    small.write(RAW_TABLE.name, "\n".join(crosses) + "\n")
    raw = build(DIGENIC_2010, small.path, organism)
    assert rows(raw) == rows(listed)
    assert raw.grid is not None
    assert listed.grid is not None
    # the list says nothing of GCN4, which the raw table has as an array
    find = organism.genes.find
    assert set(raw.grid.array_gene) == set(listed.grid.array_gene) | {find("GCN4")}
    # a cross of the raw table without a row gave no score; one with a weak score was measured
    pairs = np.array([[find("SSA1"), find("GCN4")], [find("EFB1"), find("GCN4")]])
    assert raw.grid.known(*pairs.T).tolist() == [True, False]
    assert raw.cross_counts()["listed"] == listed.cross_counts()["listed"]
    assert raw.cross_counts()["unlisted"] < listed.cross_counts()["unlisted"] + len(raw.grid.query_gene)


def test_the_stringent_list_says_by_what_it_was_selected(small, organism: Organism) -> None:
    dataset = build(STRINGENT_2010, small.path, organism)
    assert dataset.card()["selection"] == {
        "epsilon": "E[epsilon given listed at <= -0.12 or >= 0.16, p < 0.05]; unlisted pairs of this screen "
        "have mean -0.007, sd 0.046 in the 2016 screen of the same laboratory"
    }
    assert build(DIGENIC_2016, small.path, organism).card()["selection"] == {}


def test_the_other_digenic_study_is_optional(small, organism: Organism) -> None:
    small.remove(FILES[0])
    assert "2016 release" not in build(DIGENIC_2010, small.path, organism).noise
    with pytest.raises(
        DatasetError, match="needs the study 'costanzo2016-dcell', which .* does not hold: put"
    ):
        build(DIGENIC_2016, small.path, organism)


@pytest.mark.parametrize(
    ("name", "file", "study"),
    [
        (DIGENIC_2010, STRINGENT, "costanzo2010"),
        (DIGENIC_2010, FITNESS, "costanzo2016"),
        (FITNESS_2016, FITNESS, "costanzo2016"),
    ],
)
def test_a_missing_study_is_named(small, organism: Organism, name: str, file: str, study: str) -> None:
    small.remove(file)
    with pytest.raises(DatasetError, match=f"dataset '{name}' needs the study '{study}'"):
        build(name, small.path, organism)


def test_unknown_names_and_policies_are_refused(small, organism: Organism) -> None:
    with pytest.raises(DatasetError, match="no yeast dataset 'yeast-x'; known datasets: yeast-digenic"):
        build("yeast-x", small.path, organism)
    with pytest.raises(ConfigError, match="policy 'alleles' has no setting 'best': choose one of averaged"):
        build(FITNESS_2016, small.path, organism, alleles="best")


@pytest.mark.slow
def test_the_agreement_of_the_two_studies_is_said_of_both(small, organism: Organism) -> None:
    small.write(FILES[0], "2 YAL002W YDL227C -0.1\n2 YAL002W YAR042W 0.3\n2 YAL002W YAL003W -0.3\n")
    for name, year in ((DIGENIC_2010, "2016"), (DIGENIC_2016, "2010")):
        assert (
            f"against the {year} release r = -0.19 on 3 shared pairs"
            in build(name, small.path, organism).noise
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_second_build_comes_from_the_cache(
    small,
    organism: Organism,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path_factory.mktemp("cache")))
    with stored(small.path, organism) as store:
        first = build_dataset(name, store, organism)

        def never(*given: object, **named: object) -> None:
            raise AssertionError("built again")

        with monkeypatch.context() as patched:
            patched.setattr("wildtype.sources.yeast.recipe.build_dataset", never)
            second = build_dataset(name, store, organism)
            with pytest.raises(AssertionError, match="built again"):
                build_dataset(name, store, organism, alleles="apart")
    assert second.card() == first.card()
    assert second.sha256 == first.sha256
    small.replace(FITNESS, "act1-101\tNaN\tNaN\t0.6", "act1-101\tNaN\tNaN\t0.61")
    changed = build(name, small.path, organism)
    position = organism.genes.find("ACT1")
    if name == FITNESS_2016:
        assert changed.sha256 != first.sha256
    else:
        assert changed.single_fitness is not None
        assert changed.single_fitness[position] == pytest.approx(0.61)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file"),
    [
        (DIGENIC_2010, STRINGENT),
        (STRINGENT_2010, STRINGENT),
        (DIGENIC_2016, FILES[0]),
        (FITNESS_2016, FITNESS),
    ],
)
def test_the_order_of_input_rows_does_not_change_the_hash(
    small, organism: Organism, name: str, file: str
) -> None:
    expected = build(name, small.path, organism)
    lines = small.text(file).splitlines()
    head = lines[:1] if file == FITNESS else []
    rest = lines[len(head) :]
    order = generator(0, "order of input rows").permutation(len(rest))
    small.write(file, "\n".join([*head, *(rest[i] for i in order)]) + "\n")
    again = build(name, small.path, organism)
    assert again.sha256 == expected.sha256
    assert again.card() == expected.card()
    np.testing.assert_array_equal(again.single_fitness, expected.single_fitness)


def test_pairs_in_nine_conditions_are_nine_phenotypes_the_reference_first(small, organism: Organism) -> None:
    small.write(test_diazmejia2018.FILE, test_diazmejia2018.table())
    dataset = build(GIS_2018, small.path, organism)
    assert dataset.targets[:3] == ("epsilon:reference", "epsilon:DMSO", "epsilon:MMS")
    assert len(dataset.targets) == len(dataset.phenotypes) == 9
    assert dataset.first_target()[1].name == "epsilon:reference"
    frame = dataset.to_pandas()
    assert len(frame) == len(dataset) == 3 * 9
    found = frame[frame.phenotype == "epsilon:reference"].set_index("genes").value
    assert found.to_dict() == pytest.approx(
        {"YAL001C,YAL002W": 0, "YAL002W,YDL227C": 1, "YAR042W,YDL227C": 6}
    )
    assert len(dataset) + sum(dataset.excluded.values()) == 7 * 18
    assert dataset.excluded["measurement that the dataset is not about"] == 3 * 9


def test_control_crosses_are_pairs_and_triple_mutants_are_counted(small, organism: Organism) -> None:
    for name, text in test_tau_sga.SMALL.items():
        small.write(name, text)
    dataset = build(TAU_SGA, small.path, organism)
    frame = dataset.to_pandas().set_index("genes")
    assert frame.value.to_dict() == pytest.approx({"YAL001C,YFL039C": 0.02, "YAL001C,YAL005C": -0.05})
    assert frame.kinds.to_dict() == {
        "YAL001C,YFL039C": "reduced,reduced",
        "YAL001C,YAL005C": "reduced,absent",
    }
    assert sorted(dataset.table.sd) == pytest.approx([0.03, 0.04])
    assert any(note.endswith("are triple mutants and no rows here: 1") for note in dataset.notes)
    assert dataset.single_fitness_source == "tau-sga:fitness"


def test_the_reporter_beyond_expectation_comes_first(small, organism: Organism) -> None:
    test_jonikas2009.write(small.path, test_jonikas2009.variables())
    dataset = build(UPR_2009, small.path, organism)
    assert dataset.targets == ("UPR interaction", "UPR reporter")
    assert len(dataset) + sum(dataset.excluded.values()) == 2 * 45
    frame = dataset.to_pandas()
    assert set(frame[frame.phenotype == "UPR interaction"].genes.str.count(",")) == {1}
    assert set(frame[frame.phenotype == "UPR reporter"].genes.str.count(",")) == {0, 1}


def test_what_can_be_built_is_built_and_loaded_without_a_network(
    small, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path_factory.mktemp("cache")))
    small.remove(FILES[1])
    built: list[catalogue.Built] = []
    catalogue.build("yeast", small.path, report=built.append)
    left_out = {one.name: one.why for one in built if isinstance(one, catalogue.LeftOut)}
    assert [one.name for one in built] == ["yeast", *RECIPES]
    assert list(left_out) == [
        FULL_2016,
        DIGENIC_2016,
        REPAIR_2016,
        CHROMATIN_2016,
        COLLINS_2007,
        SCHULDINER_2005,
        GIS_2018,
        TAU_SGA,
        UPR_2009,
        "yeast-trigenic-kuzmin2018",
        "yeast-trigenic-kuzmin",
        "yeast-calls-kuzmin2018",
        "yeast-xga-celaj2020",
        "yeast-cellsize-jorgensen2002",
    ]
    assert FILES[1].removesuffix(".gz") in left_out[DIGENIC_2016]
    assert "TableS1.tsv is not in" in left_out["yeast-trigenic-kuzmin"]

    def refuse(*given: object, **named: object) -> None:
        raise OSError("a network was asked for")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    with pytest.raises(OSError, match="a network was asked for"):
        socket.socket()
    for dataset in (one for one in built if isinstance(one, Dataset)):
        assert catalogue.load_dataset(dataset.name).sha256 == dataset.sha256
    with pytest.raises(DatasetError, match="not built yet"):
        catalogue.load_dataset(DIGENIC_2016)


def test_a_folder_without_any_dataset_is_an_error(
    small, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path_factory.mktemp("cache")))
    small.remove(FITNESS)
    for table in small.path.glob("phenotype_*"):
        table.unlink()
    with pytest.raises(DatasetError, match="no dataset of 'yeast' can be built from .*strain_ids_and_single"):
        catalogue.build("yeast", small.path)
    small.write(FITNESS, "damaged\n")
    with pytest.raises(SourceError, match=FITNESS):
        catalogue.build("yeast", small.path)


def test_features_of_the_own_table_are_refused(small, organism: Organism) -> None:
    block = organism.features["phenotypes"]
    for name, study in ((CONDITIONS_2021, "costanzo2021"), (MORPHOLOGY_2020, "mattiazzi2020")):
        recipe = RECIPES[name]
        sources = str(recipe.phenotype["source"]).split(" + ")
        assert {source.split(":")[0] for source in sources} == {study}
        assert set(sources) & {s for one in STUDIES if one.name == study for s in measured_as(one)}
        assert len(sources) == 2
    # what a query of the store calls its phenotypes is refused too
    used = {source.split(":")[0] for source in block.measured}
    for study in used:
        names = {f"{study}:{p.name}" for p in READERS[study](small.path, organism.genes).phenotypes}
        assert names <= set(block.measured)


@pytest.mark.slow
def test_the_command_prints_a_line_for_each_dataset_and_all_of_it_on_demand(
    small, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path_factory.mktemp("cache")))
    said = wildtype("data", "build", "yeast", "--from", str(small.path))
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("yeast: ")
    assert [line.partition(":")[0] for line in lines[1:]] == [
        name for name in RECIPES if catalogue.is_built(name)
    ]
    assert "epsilon" in next(line for line in lines if line.startswith(DIGENIC_2016))
    assert " genes" in lines[1]
    whole = wildtype("data", "build", "yeast", "--from", str(small.path), "--verbose")
    assert "sha256" in whole.stdout
    assert len(whole.stdout.splitlines()) > 20 * len(lines)
