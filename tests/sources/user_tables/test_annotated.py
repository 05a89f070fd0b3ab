"""AnnData files: cells with their perturbation in obs become means per perturbation, with number and sd."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.sources.user_tables.tables import yeast
from wildtype.datasets.profiles import profile_dataset
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import ConfigError, SourceError
from wildtype.sources.user_tables.layout import Layout
from wildtype.sources.user_tables.table import Reading, read_table
from wildtype.sources.user_tables.vocabulary import Columns

LABELS = ["SGS1+SRS2", "SGS1", "control", "SGS1", "non-targeting", "SGS1+SRS2", "CDC28"]
CONTROLS = Layout(controls=("control", "non-targeting"))


@pytest.fixture
def anndata() -> Any:
    return pytest.importorskip("anndata")


def cells(anndata: Any, folder: Path, matrix: Any = None, **obs: list[Any]) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.poisson(2.0, (len(LABELS), 4)).astype(np.float32)
    frame = pd.DataFrame(
        obs or {"perturbation": LABELS, "n_counts": x.sum(axis=1)},
        index=[f"cell{i}" for i in range(len(LABELS))],
    )
    var = pd.DataFrame({"gene_symbols": ["SGS1", "PDR5", "ENSG01", "HO"]}, index=["a", "b", "c", "d"])
    data = anndata.AnnData(X=x if matrix is None else matrix(x), obs=frame, var=var)
    data.layers["twice"] = 2 * x
    path = folder / "screen.h5ad"
    data.write_h5ad(path)
    return path, x


def read(path: Path, layout: Layout = CONTROLS) -> tuple[Any, ReadReport, Reading]:
    reports: list[ReadReport] = []
    readings: list[Reading] = []
    m = read_table(path, yeast(), layout, collect=reports.append, tell=readings.append)
    return m, reports[0], readings[0]


def table(m: Any) -> dict[tuple[str, str], tuple[float, float, int]]:
    out = {}
    for row in range(len(m)):
        genes = "+".join(m.genes[g] for g in m.gene[m.offsets[row] : m.offsets[row + 1]])
        key = (
            genes,
            m.traits[m.trait[row]],
            str(m.environments[m.environment[row]]),
            m.replicates[m.replicate[row]],
        )
        assert key not in out
        out[key] = (float(m.value[row]), float(m.sd[row]), int(m.n[row]))
    return out


SETS = {
    "YMR190C+YJL092W": [0, 5], "YMR190C": [1, 3], "YBR160W": [6], "": [2, 4],
}  # fmt: skip
GENES = {"YMR190C": 0, "YOR153W": 1, "YDL227C": 3}


@pytest.mark.parametrize("matrix", [None, sparse.csr_matrix, sparse.csc_matrix])
def test_cells_of_one_perturbation_are_averaged(tmp_path: Path, anndata: Any, matrix: Any) -> None:
    path, x = cells(anndata, tmp_path, matrix)
    m, report, reading = read(path)
    found = table(m)
    for genes, rows in SETS.items():
        for gene, at in GENES.items():
            value, sd, n = found.pop((genes, gene, "not stated", ""))
            own = x[rows, at].astype(np.float64)
            assert value == pytest.approx(own.mean())
            assert n == len(rows)
            assert (np.isnan(sd) and n == 1) or sd == pytest.approx(own.std(ddof=1))
    assert not found
    assert report.dropped == {"numbers of measured genes that the organism does not have": 4}
    assert report.rows == report.kept + sum(report.dropped.values())
    said = "\n".join(reading.remarks)
    assert "7 cells or samples are averaged to 4 rows of 1 to 2" in said
    assert "measured genes: gene_symbols" in said
    assert "left out: ENSG01" in said
    dataset = profile_dataset(m, yeast(), name="screen")
    assert len(dataset) == 3
    assert dataset.excluded["measurement of the wild type"] == 3
    (double,) = np.flatnonzero(dataset.table.order == 2)
    measured = [yeast().genes.find(name) for name in ("SGS1", "HO")]
    assert dataset.table.profiles is not None
    np.testing.assert_allclose(dataset.table.profiles[double][measured], x[[0, 5]][:, [0, 3]].mean(axis=0))


def test_conditions_and_replicates_stay_apart(tmp_path: Path, anndata: Any) -> None:
    path, x = cells(
        anndata,
        tmp_path,
        gene=["SGS1", "SGS1", "SGS1", "SGS1", "ctrl", "SRS2+SGS1", "SGS1+SRS2"],
        replicate=["a", "b", "a", "a", "a", "a", "a"],
        condition=["heat", "heat", "heat", "cold", "cold", "cold", "cold"],
    )
    m, *_ = read(path, Layout(controls=("ctrl",), layer="twice", kind="reduced"))
    found = table(m)
    assert found["YMR190C", "YDL227C", "heat", "a"][0] == pytest.approx(2 * x[[0, 2], 3].mean())
    assert found["YMR190C", "YDL227C", "heat", "b"][0] == 2 * x[1, 3]
    assert found["YMR190C", "YDL227C", "cold", "a"][2] == 1
    pair = next(key for key in found if "+" in key[0] and key[1] == "YDL227C")
    assert found[pair][0] == pytest.approx(2 * x[[5, 6], 3].mean())
    assert {PerturbationKind(kind) for kind in m.kind} == {PerturbationKind.REDUCED_EXPRESSION}


def test_a_column_of_conditions_may_name_the_perturbation(tmp_path: Path, anndata: Any) -> None:
    labels = ["SGS1+ctrl", "ctrl", "SGS1+SRS2", "SGS1+ctrl", "ctrl", "ctrl", "ctrl"]
    path, x = cells(anndata, tmp_path, condition=labels)
    m, report, _ = read(path, Layout(controls=("ctrl",)))
    assert {key[0] for key in table(m)} == {"", "YMR190C+YJL092W"}
    assert report.dropped["a gene beside a control"] == 3
    m, _, reading = read(path, Layout(controls=("ctrl",), control_pairs="single"))
    assert table(m)["YMR190C", "YMR190C", "not stated", ""][0] == pytest.approx(x[[0, 3], 0].mean())
    again = Layout.from_plain(reading.layout.to_plain())
    assert str(table(read(path, again)[0])) == str(table(m))


def test_what_is_wrong_is_one_sentence(tmp_path: Path, anndata: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = cells(anndata, tmp_path)
    for layout, message in (
        (Layout(), "row 3, column 'perturbation': 'control' looks like a control"),
        (Layout(Columns(genes="guide"), controls=("control",)), "no column 'guide'"),
        (Layout(layer="counts"), "no layer 'counts' .it has 'twice'.: name one with --layer"),
    ):
        with pytest.raises(SourceError, match=message):
            read(path, layout)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(SourceError, match=r"is no whole \.h5ad file .*: export it again"):
        read(path)
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ConfigError, match=r"pip install 'wildtype\[anndata\]'"):
        read(path)


@pytest.mark.parametrize("where", ["genes", "condition", "column", "measured gene"])
def test_a_hidden_character_in_a_name(tmp_path: Path, anndata: Any, where: str) -> None:
    """Perturbations, conditions and columns are names that are kept; measured genes are printed, at most."""
    evil = {name: "\u202e" * (name == where) for name in ("genes", "condition", "column", "measured gene")}
    data = anndata.AnnData(
        X=np.ones((2, 2), np.float32),
        obs=pd.DataFrame(
            {
                "genes": ["SGS1", f"SRS2{evil['genes']}"],
                f"condition{evil['column']}": ["a", f"b{evil['condition']}"],
            },
            index=["a", "b"],
        ),
        var=pd.DataFrame(index=["SGS1", f"HO{evil['measured gene']}"]),
    )
    data.write_h5ad(tmp_path / "evil.h5ad")
    if where == "measured gene":
        assert {key[1] for key in table(read(tmp_path / "evil.h5ad")[0])} == {"YMR190C"}
        return
    with pytest.raises(SourceError, match=r"holds the hidden character \\u202e: write the name without it"):
        read(tmp_path / "evil.h5ad")


def test_an_organism_with_none_of_the_genes_is_refused(tmp_path: Path, anndata: Any) -> None:
    data = anndata.AnnData(
        X=np.ones((2, 2), np.float32),
        obs=pd.DataFrame({"gene": ["SGS1", "wt"]}, index=["a", "b"]),
        var=pd.DataFrame(index=["x", "y"]),
    )
    data.write_h5ad(tmp_path / "other.h5ad")
    with pytest.raises(SourceError, match="no measured gene .'x', 'y' .* is in organism 'yeast'"):
        read(tmp_path / "other.h5ad")
