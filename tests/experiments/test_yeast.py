"""The main job on real yeast data: build from publishers' files, train, compare, predict by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wildtype as wt
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.sources import catalogue


@pytest.mark.real
@pytest.mark.slow
def test_build_train_predict(mirror: Path, tmp_path: Path) -> None:
    built: list[catalogue.Built] = []
    catalogue.build("yeast", mirror, report=built.append)
    left_out = [one.name for one in built if isinstance(one, catalogue.LeftOut)]
    # their files are not there
    assert left_out == [
        "yeast-digenic-costanzo2016-full",
        "yeast-trigenic-kuzmin2018",
        "yeast-trigenic-kuzmin",
    ]
    assert [one.name for one in built if one.name not in left_out] == [
        "yeast",
        "yeast-digenic-costanzo2010",
        "yeast-digenic-costanzo2010-stringent",
        "yeast-digenic-costanzo2016",
        "yeast-dcell-repair",
        "yeast-dcell-chromatin",
        "yeast-emap-collins2007",
        "yeast-emap-schuldiner2005",
        "yeast-gis-diazmejia2018",
        "yeast-digenic-tausga",
        "yeast-upr-jonikas2009",
        "yeast-fitness-costanzo2016",
        "yeast-calls-kuzmin2018",
        "yeast-xga-celaj2020",
        "yeast-growth-costanzo2021",
        "yeast-morphology-mattiazzi2020",
        "yeast-morphology-vizeacoumar2010",
        "yeast-metabolome-mulleder2016",
        "yeast-cellsize-jorgensen2002",
    ]
    words = [
        "data=yeast-digenic-costanzo2016",
        "training.epochs=3",
        "training.patience=0",
        "run.progress=false",
        "baselines=[mean,additive_ridge]",
        "run.replicates=50",
        f"run.folder={tmp_path / 'run'}",
    ]
    run = train(compose(words))
    comparison = run.comparisons["epsilon"]
    assert comparison["additive_ridge"].pearson.value > 0.1
    assert np.isfinite(comparison["cell_transformer"].pearson.value)
    frame = wt.load(run.path).predict([["SGS1", "SRS2"], ["YDR217C", "YCL061C"]], as_="fitness")
    assert frame["genes"].tolist() == ["YJL092W,YMR190C", "YCL061C,YDR217C"]
    assert np.isfinite(frame[["epsilon", "fitness_expected"]]).all(axis=None)
