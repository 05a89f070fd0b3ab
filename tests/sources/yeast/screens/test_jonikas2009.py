"""The reporter of the unfolded-protein response: the real file, and small ones of the same variables."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.files import sha256_of_file
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.jonikas2009 import MATRIX, PUBLISHER, read, read_matrix

NAMES = ["TFC3", "VPS8", "EFB1", "WT_DHIS3::KAN", "ACT1", "ROX3-2", "HTTR", "DOUBLE", "YAR044W"]


def variables(names: list[str] = NAMES) -> dict[str, Any]:
    """Return the file's variables: symmetric numbers with an empty diagonal."""
    n = len(names)
    value = np.add.outer(np.arange(n), np.arange(n)) / 10
    np.fill_diagonal(value, np.nan)
    cells = np.empty((1, n), dtype=object)
    cells[0] = [np.array([name]) for name in names]
    return {
        "DM_array_merged": value,
        "DM_Hill_merged": np.ones((n, n)),
        "DM_corr": np.ones((n, n)),
        "num_measurements": np.full((n, n), 3, np.uint8),
        "qnames_out": cells,
        "anames_out": cells,
        "qindex_out": np.ones((n, 2)),
        "aindex_out": np.ones((n, 2)),
    }


def write(folder: Path, content: dict[str, Any]) -> None:
    stream = io.BytesIO()
    savemat(stream, content)
    (folder / MATRIX.name).write_bytes(stream.getvalue())


@pytest.fixture
def essential(small, genes: GeneIndex) -> GeneIndex:
    """The small organism, whose list of essential genes has TFC3, EFB1 and ACT1."""
    write(small.path, variables())
    return genes


def test_every_unordered_pair_is_read_once(small, essential: GeneIndex) -> None:
    readings: list[ReadReport] = []
    found = read(small.path, essential, collect=readings.append)
    rows, further = (
        {
            frozenset((p.gene, p.kind, p.allele) for p in r.genotype.perturbations): r
            for r in found.records()
            if r.phenotype.name == name
        }
        for name in ("UPR reporter", "UPR interaction")
    )
    assert len(rows) + len(further) == len(found)
    deletion, other = PerturbationKind.DELETION, PerturbationKind.OTHER_ALLELE
    pair = rows[frozenset({("YAL001C", other, ""), ("YAL002W", deletion, "")})]
    assert (pair.value, pair.n) == (0.1, 3)
    single = rows[frozenset({("YAL002W", deletion, "")})]  # the cross with the wild-type control
    assert single.value == pytest.approx(0.4)
    assert rows[frozenset({("YAL002W", deletion, ""), ("YBL093C", other, "rox3-2")})].value == pytest.approx(
        0.6
    )
    assert frozenset({("YAR042W", deletion, ""), ("YFL039C", other, "")}) in rows
    assert further[frozenset({("YAL001C", other, ""), ("YAL002W", deletion, "")})].value == pytest.approx(
        0.1 - 1
    )
    assert further.keys() == {mutant for mutant in rows if len(mutant) == 2}
    reading, beyond = readings[-2:]
    assert (reading.use, beyond.use) == ("UPR reporter", "UPR interaction")
    assert (reading.rows, reading.kept) == (45, 21)
    assert reading.dropped == {"unknown gene": 9, "ambiguous gene name": 8, "both strains of one gene": 7}
    assert reading.renamed == 6
    assert (beyond.rows, beyond.kept) == (45, 15)
    assert beyond.dropped == dict(reading.dropped) | {"cross with the wild-type control: one gene": 6}


def test_values_that_are_not_there_are_counted(small, essential: GeneIndex) -> None:
    content = variables()
    content["DM_array_merged"][0, 1] = content["DM_array_merged"][1, 0] = np.nan
    write(small.path, content)
    readings: list[ReadReport] = []
    read(small.path, essential, collect=readings.append)
    assert [reading.dropped["no value"] for reading in readings[-2:]] == [1, 1]


def test_a_level_without_an_expected_one_has_no_interaction(small, essential: GeneIndex) -> None:
    content = variables()
    content["DM_Hill_merged"][0, 1] = content["DM_Hill_merged"][1, 0] = np.nan
    write(small.path, content)
    readings: list[ReadReport] = []
    read(small.path, essential, collect=readings.append)
    assert [reading.kept for reading in readings[-2:]] == [21, 14]
    assert readings[-1].dropped["no level that the Hill model expects"] == 1


def test_the_order_of_strains_does_not_matter(small, essential: GeneIndex) -> None:
    first = read(small.path, essential)
    order = np.random.default_rng(0).permutation(len(NAMES))
    content = variables()
    for name in ("DM_array_merged", "DM_Hill_merged", "num_measurements"):
        content[name] = content[name][np.ix_(order, order)]
    for name in ("qnames_out", "anames_out"):
        content[name] = content[name][:, order]
    write(small.path, content)
    second = read(small.path, essential)
    sets = [{(found.genotype(i).id, found.value[i]) for i in range(len(found))} for found in (first, second)]
    assert sets[0] == sets[1]


def changed(name: str, change: Any) -> dict[str, Any]:
    content = variables()
    content[name] = change(content[name])
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({k: v for k, v in variables().items() if k != "num_measurements"}, "no variable 'num_measurements'"),
        (changed("DM_array_merged", lambda m: np.triu(m)), "DM_array_merged is not symmetric"),
        (changed("DM_array_merged", lambda m: np.where(np.isnan(m), np.inf, m)), "not symmetric and finite"),
        (
            changed("DM_array_merged", lambda m: m[:5, :5]),
            r"shape \(5, 5\), expected numbers of shape \(9, 9\)",
        ),
        (changed("DM_Hill_merged", lambda m: np.triu(m)), "DM_Hill_merged is not symmetric"),
        ({k: v for k, v in variables().items() if k != "DM_Hill_merged"}, "no variable 'DM_Hill_merged'"),
        (changed("num_measurements", lambda m: m - 0.5), "other than whole numbers"),
        (changed("qnames_out", lambda c: c[:, ::-1]), "names other strains in qnames_out"),
        (changed("qnames_out", lambda c: np.zeros((9, 1))), "qnames_out holds numbers"),
        (variables(["TFC3", "TFC3"]), "names one twice"),
        (variables(["HTTR", "KWS"]), "no UPR reporter of two known genes"),
        (variables(["VPS8", "WT_DHIS3::KAN"]), "no UPR interaction of two known genes"),
    ],
)
def test_another_content_is_refused(
    small, essential: GeneIndex, content: dict[str, Any], message: str
) -> None:
    write(small.path, content)
    with pytest.raises(SourceError, match=message) as caught:
        read(small.path, essential)
    assert MATRIX.name in str(caught.value)


def test_missing_files_are_named(small, essential: GeneIndex) -> None:
    small.remove("essential_orfs_sgdp_041902.txt.gz")
    with pytest.raises(SourceError, match=r"essential_orfs_sgdp_041902\.txt"):
        read(small.path, essential)
    (small.path / MATRIX.name).unlink()
    with pytest.raises(SourceError, match=rf"{MATRIX.name} is not in"):
        read(small.path, essential)


def test_a_damaged_file_is_read_or_refused_and_never_anything_else(shared_small) -> None:
    write(shared_small.path, variables())
    path = shared_small.path / MATRIX.name
    whole = path.read_bytes()
    assert read_matrix(path)[0] == NAMES

    @settings(max_examples=60)
    @given(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.binary(max_size=6)), max_size=3), st.integers(0)
    )
    def check(places: list[tuple[int, bytes]], cut: int) -> None:
        data = whole
        for at, new in places:
            data = data[:at] + new + data[at + len(new) :]
        path.write_bytes(data[: cut % len(whole)] if cut % 2 else data)
        try:
            read_matrix(path)
            named = True
        except SourceError as error:
            named = MATRIX.name in str(error)
        assert named

    check()
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="not a MATLAB 5 file"):
        read_matrix(path)


@pytest.mark.real
def test_real_file(mirror: Path, real_genes: GeneIndex) -> None:
    assert sha256_of_file(mirror / MATRIX.name) == MATRIX.sha256
    names, value, expected, counts = read_matrix(mirror / MATRIX.name)
    assert len(names) == PUBLISHER.published["strains"] == 444
    assert np.isnan(np.diag(value)).all()
    assert (np.isfinite(value).sum(), np.isfinite(expected).sum(), counts.max()) == (84_480, 142_884, 28)
    readings: list[ReadReport] = []
    found = read(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept) for r in readings[-2:]] == [(444 * 445 // 2, n) for n in (39_431, 39_271)]
    assert readings[-1].dropped["no level that the Hill model expects"] == 14
    assert (found.n > 0).all()
    is_level = found.phenotype == [p.name for p in found.phenotypes].index("UPR reporter")
    beyond, found = found.take(~is_level), found.take(is_level)
    assert np.bincount(found.order).tolist() == [0, 146, 39_285]
    assert (beyond.order == 2).all()
    # Most pairs are as expected; of two mutations of one complex, the second adds little.
    assert abs(np.median(beyond.value)) < 0.05
    complex_ = {real_genes.find(name) for name in ("HRD1", "HRD3", "DER1", "YOS9", "USA1")}
    inside = np.isin(beyond.gene.reshape(-1, 2), list(complex_)).all(1)
    assert inside.sum() >= 5
    assert np.median(beyond.value[inside]) < -0.3
    mean = np.bincount(found.gene, np.repeat(found.value, found.order)) / np.maximum(
        np.bincount(found.gene), 1
    )
    often = np.bincount(found.gene) > 100
    ranks = {
        real_genes.label(i).split()[0]: r for r, i in enumerate(np.argsort(np.where(often, mean, np.inf)))
    }
    assert max(ranks["IRE1"], ranks["HAC1"]) < 5  # without them there is no response
