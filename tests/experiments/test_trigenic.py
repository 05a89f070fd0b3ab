"""From a folder with a trigenic table to a finished run: build, train, and the table of the comparison.

All files are made up, in the published layouts: numbers that come out mean nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wildtype as wt
from tests.sources.yeast import trigenic_files
from tests.sources.yeast.conftest import FILES, Folder
from wildtype.cli.main import main
from wildtype.sources.yeast.genes.sgd import FEATURES


def fill(folder: Folder) -> None:
    """Write the small files of an organism that has the genes of the trigenic table, and the table."""
    for name, text in FILES.items():
        folder.write(name, text)
    text = FILES[FEATURES]
    cells = next(line for line in text.split("\r\n") if "\tYAL002W\t" in line).split("\t")
    orfs = {orf for pair in trigenic_files.PAIRS for orf in pair[::2]}
    orfs |= {strain.partition("_")[0] for strain, _ in trigenic_files.ARRAYS}
    more = [
        "\t".join([f"X{i:08d}", *cells[1:3], orf, "", "", *cells[6:]]) for i, orf in enumerate(sorted(orfs))
    ]
    folder.write(FEATURES, text + "\r\n".join(more) + "\r\n")
    trigenic_files.write_2018(folder.path)


@pytest.mark.slow
def test_the_trigenic_experiment_runs_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))

    def wildtype(*words: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["wildtype", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert not end.value.code, err
        return out, err

    source = tmp_path / "files"
    source.mkdir()
    fill(Folder(source))
    out, err = wildtype("data", "build", "yeast", "--from", str(source), "--json")
    cards = {card["name"]: card for card in json.loads(out)}
    triples = len(trigenic_files.PAIRS) * len(trigenic_files.ARRAYS)
    assert cards["yeast-trigenic-kuzmin2018"]["rows_by_phenotype_and_order"]["tau"] == {"3": triples}
    assert "TableS1.tsv is not in" in cards["yeast-trigenic-kuzmin"]["left_out"]
    assert "yeast-trigenic-kuzmin is left out: TableS1.tsv is not in" in err

    folder = tmp_path / "run"
    wildtype(
        "train",
        "experiment=yeast-trigenic",
        "model.width=16",
        "model.heads=4",
        "model.layers=1",
        "model.head.heads=2",
        "training.epochs=2",
        "training.batch_size=64",
        "baselines=[mean,additive_ridge]",
        f"run.folder={folder}",
        "run.progress=false",
        "run.replicates=50",
    )
    record = json.loads((folder / "split.json").read_text(encoding="utf-8"))
    assert "query-pair" in json.dumps(record)
    predictions = pd.read_parquet(folder / "predictions.parquet")
    assert {"cell_transformer", "mean", "additive_ridge"} <= set(predictions.columns)
    assert len(predictions)
    out, _ = wildtype("evaluate", str(folder))
    for shown in ("cell_transformer", "additive_ridge", "mean", "tau", "yeast-trigenic-kuzmin2018"):
        assert shown in out

    # Two genes of a row of the table with every other gene of the organism: most of them were not measured.
    model, organism = wt.load(folder), wt.load_organism("yeast")
    assert len(model.genes) == len(organism.genes) > len(model.encoded.genes)
    first, second = predictions["genes"].iloc[0].split(",")[:2]
    names = [name for name in organism.genes.names if name not in (first, second)]
    frame = model.predict([[first, second, name] for name in names])
    assert np.isfinite(frame["tau"][~frame["note"].str.contains("is lethal")]).all()
