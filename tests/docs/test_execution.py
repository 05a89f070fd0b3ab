"""Every block of the documents that is marked so is executed, with tiny runs in place of the reader's."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import yaml

import wildtype as package
from tests.benchmarks.command import benchmarks
from tests.command import wildtype
from tests.datasets.store.examples import study
from tests.docs.commands import called, command_of, write_files
from tests.docs.laboratories import write_laboratories
from tests.docs.pages import PAGES, Block, blocks
from tests.tiny import NAMES, little_yeast, tiny_dataset
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition
from wildtype.datasets.store import Store, store_path
from wildtype.experiments.run import train
from wildtype.experiments.settings.ablation import read_ablation
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.tuning import read_tuning
from wildtype.experiments.slurm_presets import read_preset
from wildtype.organism.storage import save_organism
from wildtype.plugins import load_plugins
from wildtype.sources.catalogue import load_dataset, load_organism, organism_folder
from wildtype.sources.user_organisms.description import read_description

pytestmark = pytest.mark.slow

BLOCKS = [block for page in PAGES for block in blocks(page)]
MARKED = [b for b in BLOCKS if b.mark is not None and (b.mark.runs is None or b.mark.runs)]
SMALL = ["model.width=14", "model.heads=7", "model.layers=1", "model.head.heads=2", "model.table=false",
         "model.trees.bags=0", "training.epochs=1", "baselines=[mean]", "run.progress=false",
         "run.replicates=20"]  # fmt: skip
LITTLE = ["data.rows=4000", "training.epochs=1", "training.threads=1", "baselines=[mean]",
          "run.progress=false", "run.replicates=20"]  # fmt: skip
LITTLE_OF_MODEL = {
    "cell_transformer": ["model.trees.bags=0"],
    "pair_screen": ["model.folds=2", "model.gene_folds=2", "model.iterations=5"],
}
STRAINS = "genes,betaxanthin\ncrtE;crtYB,1.2\ncrtE;crtYB;GCN4,0.8\ncrtE;crtYB;MET4,1.1\n"
"""A screen of strains with foreign genes; a page has the table of these genes."""
ORGANISMS = "docs/other-organisms.md"
READERS_FILES = {
    "plan.csv": "genes\nSGS1;SRS2\nCDC28:reduced;CLN2\n",
    "own.csv": "genes,value\nSGS1;CLN2,-0.1\nSRS2;PDR5,0.05\n",
    "traits.csv": "genes,value\nSGS1,2.1\nSRS2,1.9\nSGS1;SRS2,0.4\nCDC28,1.1\n",
    "candidates.txt": "SGS1\nSRS2\nCDC28\nCLN2\nPDR5\n",
    "library.csv": "genes\nCDC28\nCLN2\nPDR5\n",
    "genes.tsv": "gene_id\tsymbol\tessential\n" + "".join(f"M{i}\tgen{i}\t{i % 2}\n" for i in range(9)),
    "ppi.csv": "gene_a,gene_b,score\nM1,gen2,0.5\nM3,M4,0.9\nM4,M8,0.2\n",
    "processes.gmt": "growth\t-\tM1\tM2\tM3\nrepair\t-\tM4\tM5\n",
    "localisation.csv": "gene,nucleus,membrane\nM1,1,0\nM2,0,1\n",
    "pairs.csv": "geneA,geneB,epsilon\nM1,M2,0.1\nM3,M9,-0.2\nM4,negative,0.0\nM1,M3,0.2\n",
}


def measured() -> Measurements:
    """Return one triple mutant of a study that the documents ask for."""
    return Measurements.build(
        study("kuzmin2018"),
        genes=NAMES,
        gene=[[0, 1, 2]],
        value=[-0.2],
        p=[0.01],
        phenotypes=[PhenotypeDefinition(name="tau", min_order=3)],
    )


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the documents' reader has: runs, files, and a cache with a store and an organism."""
    folder = tmp_path_factory.mktemp("workshop")
    with mock.patch.dict(os.environ, {"WILDTYPE_CACHE": str(folder / "cache")}):
        yeast = little_yeast()
        save_organism(yeast, organism_folder("yeast"))
        words = ["data.name=tiny-growth", *SMALL, f"run.folder={folder / 'RUN'}"]
        train(compose(words), dataset=replace(tiny_dataset(), organism=yeast))
        train(
            compose(["data=ecoli-core-growth", "data.rows=400", *SMALL, f"run.folder={folder / 'runs/core'}"])
        )
        with Store.create(store_path()) as store:
            store.ingest(measured())
        shutil.copy(store_path(), folder)
    for name, run in {"A": "RUN", "B": "RUN", "demo": "runs/core"}.items():
        shutil.copytree(folder / run, folder / "runs" / name)
    for name, text in READERS_FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_laboratories(folder)
    write_files(BLOCKS, folder)
    return folder


@pytest.fixture
def place(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in that folder, without what the block before wrote there and did not need."""
    monkeypatch.chdir(workshop)
    monkeypatch.setenv("WILDTYPE_CACHE", str(workshop / "cache"))
    for path in (workshop / "my.csv", workshop / "next.csv"):
        path.unlink(missing_ok=True)
    shutil.rmtree(workshop / "cache/datasets/my", ignore_errors=True)
    shutil.copy(workshop / "store.duckdb", workshop / "cache")
    return workshop


@pytest.mark.parametrize("block", [b for b in MARKED if b.language == "console"], ids=lambda b: b.place)
def test_commands_run(block: Block, place: Path) -> None:
    assert block.mark is not None
    done = 0
    for _, words in called([block], place):
        command = command_of(words)
        more = None if command is None else block.mark.words(" ".join(command))
        if command is not None and more is not None:
            bench = command[0] == "benchmarks"
            said = benchmarks(*command[1:], *more) if bench else wildtype(*command, *more)
            assert said.returncode == 0, f"{block.place}: {' '.join(words)}: {said.stderr}"
            done += 1
    assert done


def little_training(words: list[str]) -> list[str]:
    """Return the settings by which a training of a document is made small."""
    chosen = [word for word in words if word.startswith(("model=", "data=", "experiment="))]
    # Of several models of --multirun, all are trained by the first one's settings.
    model = compose([word.partition(",")[0] for word in chosen]).model.name
    return [*LITTLE, *LITTLE_OF_MODEL.get(model, [])]


class Reader:
    """Does what the pages say one block after the other, in a folder with the files; trainings in little."""

    def __init__(self, folder: Path, mirror: Path) -> None:
        self.folder = folder
        self.done = self.commands = 0
        (folder / "FOLDER").symlink_to(mirror)
        write_files([block for block in BLOCKS if block.language == "csv"], folder)
        (folder / "strains.csv").write_text(STRAINS, encoding="utf-8")
        vectors = np.random.default_rng(0).normal(size=(40, 4))
        genes = pd.Index([f"YAL{i:03d}{strand}" for i in range(1, 21) for strand in "WC"], name="gene")
        frame = pd.DataFrame(vectors, genes, ["a", "b", "c", "d"]).reset_index()
        frame.to_parquet(folder / "esm2.parquet")

    def follow(self, block: Block) -> int:
        """Run the commands of a block; return their number."""
        assert block.mark is not None
        count = 0
        for _, words in called([block], self.folder):
            more = block.mark.words(" ".join(words[1:]), with_files=True)
            if words[0] == "wildtype" and more is not None:
                little = little_training(words[2:]) if words[1] == "train" else []
                said = wildtype(*words[1:], *little, *more)
                assert said.returncode == 0, f"{block.place}: {' '.join(words)}: {said.stderr}"
                count += 1
        self.commands += count
        return count


WITH_FILES = [b for b in BLOCKS if b.mark is not None and b.mark.with_files and b.page != ORGANISMS]


@pytest.fixture(scope="module")
def reader(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("reader"), mirror)


@pytest.mark.real
@pytest.mark.parametrize("number", range(len(WITH_FILES)), ids=lambda number: WITH_FILES[number].place)
def test_commands_run_with_publishers_files(
    number: int, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block finds what those before it made: they come first, where a test is run by itself."""
    monkeypatch.chdir(reader.folder)
    monkeypatch.setenv("WILDTYPE_CACHE", str(reader.folder / "cache"))
    while reader.done <= number:
        reader.done += 1
        assert reader.follow(WITH_FILES[reader.done - 1])
    assert number + 1 < len(WITH_FILES) or reader.commands > 12


@pytest.mark.real
def test_other_organisms_are_made_of_their_files(
    laboratories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    for name in ("human", "fly", "pneumococcus"):
        (tmp_path / name).mkdir()
        for path in (laboratories / name).iterdir():
            (tmp_path / name / path.name).symlink_to(path)
    page = [block for block in BLOCKS if block.page == ORGANISMS]
    write_files(page, tmp_path)
    for block in page:
        if block.mark is None or not block.mark.with_files:
            continue
        for _, words in called([block], tmp_path):
            if block.mark.words(" ".join(words[1:]), with_files=True) is not None:
                said = wildtype(*words[1:])
                assert said.returncode == 0, f"{block.place}: {' '.join(words)}: {said.stderr}"
    organisms = [load_organism(name) for name in ("human", "fly", "pneumococcus")]
    assert all(len(organism.genes) > 1000 for organism in organisms)
    rows = {name: len(load_dataset(name)) for name in ("horlbeck", "norman", "horn", "denereaz")}
    assert rows["horlbeck"] > 50_000
    assert rows["norman"] > 4_000
    assert rows["horn"] == 3 * (rows["horn"] // 3)
    assert rows["denereaz"] > 20_000


@pytest.mark.parametrize("block", [b for b in MARKED if b.language == "python"], ids=lambda b: b.place)
def test_python_runs(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert block.mark is not None
    more = (block.mark.runs or {}).get("fit", [])
    # Values are what a reader would write in Python: a list is a list, a number a number.
    pairs = ((key, yaml.safe_load(value)) for key, _, value in (word.partition("=") for word in more))
    settings = {key.replace(".", "__"): value for key, value in pairs}
    monkeypatch.setattr(package, "fit", partial(package.fit, **settings))
    names: dict[str, object] = {"wt": package}
    exec(compile(block.text, block.place, "exec"), names)
    assert len(names) > 2, f"{block.place} does nothing"


def test_files_are_read(place: Path) -> None:
    plans = {"factors": read_ablation, "space": read_tuning}
    for block in BLOCKS:
        if block.mark is not None and block.mark.file:
            if block.language == "python":
                load_plugins(place / block.mark.file)
                continue
            if block.language == "csv":
                assert len(pd.read_csv(place / block.mark.file)) > 1
                continue
            if "\ngenes:\n" in block.text:
                read_description(place / block.mark.file)
                continue
            part = next((name for name in plans if f"\n{name}:" in block.text), "")
            plans.get(part, read_preset)(str(place / block.mark.file))
