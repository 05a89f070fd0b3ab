"""The example model and baseline of docs/new-model.md, as files outside the package, go the whole way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wildtype as wt
from tests.command import assert_one_sentence, wildtype
from tests.models.test_hostile_checkpoint import change
from tests.tiny import tiny_dataset
from wildtype import plugins
from wildtype.errors import CheckpointError, ConfigError
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose, known
from wildtype.experiments.settings.stored import read_settings
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import organism_tensors
from wildtype.models.registry import MODELS, config_class, make_model
from wildtype.plugins import load_plugins

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODEL, BASELINE = HERE / "plugins" / "additive.py", HERE / "plugins" / "mean_of_genes.py"
SHORT = ["training.epochs=2", "training.batch_size=64", "run.progress=false", "run.replicates=20"]
TINY = [*SHORT, "data.name=tiny-growth", "training.deterministic=true", "model=additive"]
SETS = [["G001", "G002"], ["G003", "G004"]]


@pytest.fixture
def loaded() -> None:
    load_plugins([MODEL, BASELINE])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A plug-in of the user's, to change."""
    return Path(shutil.copy(MODEL, tmp_path / "additive.py"))


def run(folder: Path, *more: str, baselines: str = "mean_of_genes,mean") -> wt.Run:  # type: ignore[name-defined]
    words = [*TINY, f"baselines=[{baselines}]", f"run.folder={folder}", *more]
    return train(compose(words), dataset=tiny_dataset())


def test_the_document_shows_these_files() -> None:
    text = (ROOT / "docs" / "new-model.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- file: (\w+\.py) -->\n```python\n(.*?)```", text, re.S))
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in (MODEL, BASELINE)}


@pytest.mark.usefixtures("loaded")
def test_a_plugin_is_known_like_every_other() -> None:
    assert "additive" in MODELS
    assert "additive" in known("model")
    assert next(iter(MODELS)) == "cell_transformer"
    assert list(BASELINES)[-1] == "mean_of_genes"
    config = compose(["model=additive", "model.features=false"])
    assert config.model == config_class("additive")(features=False)
    assert config.training.learning_rate == 1e-2  # what suits it is registered with it
    assert compose(["model=additive", "training.learning_rate=0.1"]).training.learning_rate == 0.1
    with pytest.raises(ConfigError, match=r"model\.width"):
        compose(["model=additive", "model.width=4"])


def test_it_is_a_model_in_tables_and_never_a_baseline(loaded: None, tmp_path: Path) -> None:
    done = run(tmp_path / "run")
    table = done.comparisons["epsilon"]
    assert {s.model: s.baseline for s in table.scores} == {
        "additive": False, "mean": True, "mean_of_genes": True,
    }  # fmt: skip
    assert table.reference != "additive"
    dataset = tiny_dataset()
    rows = np.flatnonzero(dataset.table.phenotype == 1)[:40]
    draw = np.random.default_rng(0)
    predicted = {"additive": dataset.table.value[rows], "mean_of_genes": draw.normal(size=40)}
    again = evaluate_predictions(dataset, rows, predicted, phenotype="epsilon", replicates=5)
    assert not again["additive"].baseline
    assert again.reference == "mean_of_genes"


def test_it_is_given_the_features_that_it_needs(loaded: None, tmp_path: Path) -> None:
    checkpoint = run(tmp_path / "run").predictor.checkpoint
    assert checkpoint.model.of_features.weight.shape[1] == len(checkpoint.features.columns) > 0
    bare = run(tmp_path / "bare", "model.features=false").predictor.checkpoint
    assert bare.model.of_features.weight.shape[1] == 0


def test_an_unknown_need_is_refused(copy: Path) -> None:
    copy.write_text(copy.read_text().replace('needs = ("features",)', 'needs = ("featurs",)'))
    with pytest.raises(ConfigError, match="model 'additive' needs 'featurs'.*known: features, priors"):
        load_plugins(copy)
    load_plugins(MODEL)
    model = make_model(config_class("additive")(), genes=24, features=0, phenotypes=1)
    model.needs = ("graphs",)
    with pytest.raises(ConfigError, match="needs 'graphs'"):
        organism_tensors(model, tiny_dataset().organism, model.effect.weight.detach())


@pytest.mark.usefixtures("loaded")
def test_outputs_per_gene_are_a_matter_of_the_model_not_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from wildtype.models.interface import Output

    options = {"genes": 24, "features": 0, "phenotypes": [Output("profile", "gene")]}
    with pytest.raises(ConfigError, match="'additive' has no output of the form 'gene', which 'profile'"):
        make_model(config_class("additive")(), **options)
    monkeypatch.setattr(MODELS["additive"].model(), "forms", ("scalar", "gene"))
    assert make_model(config_class("additive")(), **options).effect.weight.shape == (24, 1)


def test_a_run_is_loaded_with_its_plugin_alone(copy: Path, tmp_path: Path) -> None:
    load_plugins([copy, BASELINE])
    done = run(tmp_path / "run")
    record = json.loads((done.path / "settings.json").read_text())["plugins"]
    assert [(entry["kind"], entry["name"], entry["file"]) for entry in record] == [
        ("model", "additive", "additive.py"),
        ("baseline", "mean_of_genes", "mean_of_genes.py"),
    ]
    first = done.predictor.predict(SETS)
    for module in [*plugins._loaded]:
        plugins._forget(module)
    # Nothing is loaded because the run asks for it, though the file is where it was.
    for refused in (lambda: wt.load(done.path), lambda: read_settings(done.path / "settings.json")):
        with pytest.raises(
            CheckpointError, match="needs model 'additive' from plug-in 'additive.py'.*--plugin"
        ):
            refused()
    assert_one_sentence(wildtype("predict", str(done.path), "--set", "G001,G002"), "additive.py", "--plugin")
    again = wt.load(done.path, plugin=copy).predict(SETS)
    np.testing.assert_array_equal(first["epsilon"], again["epsilon"])
    copy.write_text(copy.read_text() + "\n# another content\n")
    with pytest.raises(CheckpointError, match=r"of plug-in 'additive\.py' \(sha256 .*now comes from"):
        wt.load(done.path, plugin=copy)
    with pytest.raises(CheckpointError, match="'additive.py'"):
        run(tmp_path / "run", "run.resume=true", baselines="mean")


def test_a_baseline_alone_may_be_a_plugin(tmp_path: Path) -> None:
    load_plugins(BASELINE)
    words = [*SHORT, "data.name=tiny-growth", "model=dango", "model.width=8", "baselines=[mean_of_genes]"]
    done = train(compose([*words, f"run.folder={tmp_path / 'run'}"]), dataset=tiny_dataset())
    plugins._forget(next(iter(plugins._loaded)))
    assert np.isfinite(wt.load(done.path).predict(SETS)["epsilon"]).all()  # the model needs no plug-in
    with pytest.raises(CheckpointError, match="needs baseline 'mean_of_genes' from plug-in"):
        read_settings(done.path / "settings.json")
    with pytest.raises(ConfigError, match="no baseline 'mean_of_genes'.*--plugin"):
        make_baseline("mean_of_genes")


REFUSED = {
    "taken by the package": ('name: str = "additive"', 'name: str = "dango"', "model 'dango' already"),
    "no name": ('    name: str = "additive"\n', "", "have no name"),
    "an error": ("from torch import nn", "from torch import nothing", "ImportError"),
    "syntax": ("from torch import nn", "from torch import", "SyntaxError"),
    "leaves": ("from torch import nn", "raise SystemExit(3)", "SystemExit"),
    "registers nothing": ("@register_model", "# @register_model", "registers nothing"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_file_that_cannot_be_used_is_one_sentence(case: str, copy: Path) -> None:
    before, after, said = REFUSED[case]
    copy.write_text(copy.read_text().replace(before, after))
    assert_one_sentence(wildtype("train", "--settings", "--plugin", str(copy)), "additive.py", said)
    assert "additive" not in MODELS
    assert not plugins._loaded
    assert "additive" in [load_plugins(MODEL), *MODELS]


def test_a_missing_file_and_a_name_twice_are_one_sentence(copy: Path, tmp_path: Path) -> None:
    assert_one_sentence(wildtype("train", "--plugin", str(tmp_path / "no.py")), "no.py", "cannot be read")
    said = wildtype("train", "--settings", "--plugin", str(MODEL), "--plugin", str(copy))
    assert_one_sentence(said, "model 'additive' already, from plug-in 'additive.py'")


def test_a_changed_file_is_loaded_anew(copy: Path) -> None:
    load_plugins(copy)
    load_plugins(copy)
    copy.write_text(copy.read_text().replace("features: bool = True", "features: bool = False"))
    assert config_class("additive")().features
    load_plugins(str(copy))
    assert not config_class("additive")().features
    copy.write_text("import nothing_of_this_name")
    with pytest.raises(ConfigError, match="ModuleNotFoundError"):
        load_plugins(copy)
    assert not config_class("additive")().features  # the last one that worked


def test_what_is_run_is_what_was_hashed(copy: Path) -> None:
    """Cached bytecode of the same size and time is never taken for the file."""
    load_plugins(copy)
    assert not list(copy.parent.rglob("*.pyc"))


@pytest.fixture
def installed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> EntryPoint:
    """A package that offers the model by an entry point."""
    copy.rename(copy.with_name("installed_additive.py"))
    monkeypatch.syspath_prepend(str(copy.parent))
    offered = EntryPoint("additive", "installed_additive", "wildtype.models")
    broken = EntryPoint("broken", "not_installed_at_all", "wildtype.models")
    found = {"wildtype.models": {"additive": offered, "broken": broken}}
    monkeypatch.setattr(plugins, "_entry_points", lambda group: found.get(group, {}))
    monkeypatch.delitem(sys.modules, "installed_additive", raising=False)
    monkeypatch.setattr(MODELS, "_found", dict(MODELS._found))
    monkeypatch.setattr(MODELS, "_module", dict(MODELS._module))
    return offered


@pytest.mark.usefixtures("installed")
def test_an_installed_model_is_loaded_when_its_name_is_asked_for(tmp_path: Path) -> None:
    assert "additive" not in MODELS
    assert wildtype("train", "--settings", "model=dango").returncode == 0
    with pytest.raises(ConfigError, match="did you mean additive"):
        config_class("addiitive")
    assert "installed_additive" not in sys.modules
    done = run(tmp_path / "run", baselines="mean")
    (entry,) = json.loads((done.path / "checkpoint" / "config.json").read_text())["plugins"]
    assert entry["file"] == "installed_additive.py"
    assert np.isfinite(wt.load(done.path).predict(SETS)["epsilon"]).all()
    with pytest.raises(ConfigError, match=r"'broken' \(not_installed_at_all\) cannot be imported"):
        config_class("broken")


def test_a_class_of_a_notebook_is_registered_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(MODELS, "_found", dict(MODELS._found))
    monkeypatch.setattr(MODELS, "_module", dict(MODELS._module))
    names: dict[str, object] = {"__name__": "__notebook__"}
    exec(compile(MODEL.read_text(), "cell", "exec", dont_inherit=True), names)
    done = run(tmp_path / "run", baselines="mean")
    (entry,) = json.loads((done.path / "settings.json").read_text())["plugins"]
    assert entry["file"] == "__notebook__ (not a file)"


def test_every_command_that_makes_or_loads_a_run_takes_plugins() -> None:
    for command in ("train", "evaluate", "predict", "screen", "explain", "report", "plot", "serve",
                    "reproduce", "ablate", "tune", "profile run", "profile step", "profile trace",
                    "profile pipelines", "profile scaling", "profile estimate"):  # fmt: skip
        assert "--plugin" in wildtype(*command.split(), "--help").stdout, command


@pytest.mark.slow
def test_an_ensemble_of_plugins_is_trained_resumed_and_screened(loaded: None, tmp_path: Path) -> None:
    done = run(tmp_path / "run", "training.members=2", baselines="mean")
    assert isinstance(done.predictor.checkpoint.model, Ensemble)
    again = run(tmp_path / "run", "training.members=2", "run.resume=true", baselines="mean")
    np.testing.assert_array_equal(*(r.predictor.predict(SETS)["epsilon"] for r in (done, again)))
    folder, given = str(done.path), ["--plugin", str(MODEL)]
    options = ["--order", "2", "--among", "G001,G002,G003,G004", "--json"]
    alone, beside = (
        wildtype("screen", folder, *options, "--processes", count, *given) for count in ("1", "2")
    )
    assert alone.returncode == beside.returncode == 0, beside.stderr
    assert alone.stdout == beside.stdout
    said = wildtype("explain", folder, *given)
    assert_one_sentence(said, "additive", "not explained")


@pytest.mark.slow
def test_a_plugin_goes_through_every_command(tmp_path: Path) -> None:
    both, one = ["--plugin", str(MODEL), "--plugin", str(BASELINE)], ["--plugin", str(MODEL)]
    words = [*SHORT, "model=additive", "data.rows=400", "baselines=[mean_of_genes]", "training.threads=1"]
    folder = str(tmp_path / "run")

    def done(*line: str) -> str:
        said = wildtype(*line)
        assert said.returncode == 0, said.stderr
        return said.stdout

    done("train", *words, "training.deterministic=true", f"run.folder={folder}", *both)
    for module in [*plugins._loaded]:
        plugins._forget(module)
    assert "additive" in done("evaluate", folder)
    genes = wt.load(folder, plugin=MODEL).genes.names[:3]
    assert "epsilon" in done("predict", folder, "--set", ",".join(genes[:2]), *one)
    assert "epsilon" in done("screen", folder, "--order", "2", "--among", ",".join(genes), *one)
    done("report", folder, *both)
    assert "additive" in (tmp_path / "run" / "report.html").read_text()
    card = (tmp_path / "run" / "checkpoint" / "model_card.md").read_text()
    assert "# additive on" in card
    assert "| plug-in | additive.py (sha256 " in card
    done("plot", "comparison", folder, "-o", str(tmp_path / "a.svg"), *both)
    assert "identical" in done("reproduce", folder, "--json", *both)
    small = ["--genes", "40", "--edges", "200", "--factors", "1,2", "--repeats", "1", "--memory"]
    done("profile", "scaling", "model=additive", *small, *one)
    done("profile", "step", *words, "--steps", "2", *both)
    plan = tmp_path / "plan.yaml"
    plan.write_text("base: []\nfactors:\n  features: {without: [model.features=false]}\n")
    line = ["ablate", str(plan), *(w for w in words if not w.startswith("baselines")), "--seeds", "0"]
    done(*line, "--folder", str(tmp_path / "ablation"), "--replicates", "20", *both)


@pytest.mark.slow
def test_two_processes_train_a_plugin(tmp_path: Path) -> None:
    load_plugins([MODEL, BASELINE])
    words = ["model=additive", *SHORT, "data.rows=400", "baselines=[mean_of_genes]", "training.threads=1"]
    alone = train(compose([*words, f"run.folder={tmp_path / '1'}"]))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    program = Path(sys.executable).with_name("wildtype")
    line = ["train", *words, f"run.folder={tmp_path / '2'}", "--plugin", MODEL, "--plugin", BASELINE]
    said = subprocess.run(
        [*torchrun, "--no-python", program, *line],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-2000:]
    sets = [alone.predictor.genes.names[:2]]
    a, b = (wt.load(tmp_path / n).predict(sets)["epsilon"] for n in ("1", "2"))
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_a_job_of_a_cluster_is_given_the_plugin(tmp_path: Path) -> None:
    line = ["train", "model=additive", f"run.folder={tmp_path}", "--plugin", str(MODEL), "--dry-run"]
    script = wildtype(*line).stdout
    assert f"--plugin {MODEL}" in script
    assert "--dry-run" not in script


def test_every_other_step_of_a_model_has_a_default(loaded: None) -> None:
    model = make_model(config_class("additive")(), genes=24, features=3, phenotypes=1)
    model.without_doses()
    model.set_epoch(3)
    assert not model.has_post_fit
    assert model.least_perturbed == 1
    assert model.priors(tiny_dataset().organism.graphs) == {}


@pytest.mark.parametrize("entry", ["file", "kind", "name"])
def test_a_checkpoint_loads_no_plugin_that_somebody_wrote_into_it(
    tiny_run: Path, tmp_path: Path, entry: str
) -> None:
    mark, evil = tmp_path / "mark", tmp_path / "evil.py"
    evil.write_text(f"open({str(mark)!r}, 'w')\n")
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    asked = {"kind": "model", "name": "cell_transformer", "file": evil.name, "sha256": "0" * 64}
    asked[entry] = str(evil)

    def name_it(record: dict[str, Any]) -> None:
        record["plugins"] = [asked]
        record["plugin"] = str(evil)

    change(run / "checkpoint", name_it)
    settings = json.loads((run / "settings.json").read_text())
    (run / "settings.json").write_text(json.dumps(settings | {"plugins": [asked], "plugin": str(evil)}))
    with pytest.raises(CheckpointError) as refused:
        wt.load(run)
    assert "\n" not in str(refused.value)
    assert_one_sentence(wildtype("predict", str(run), "--set", "G001,G002"))
    assert not mark.exists()


@pytest.mark.parametrize("command", ["ablate", "tune"])
@pytest.mark.parametrize("key", ["plugin", "plugins"])
def test_a_plan_loads_no_plugin(command: str, key: str, tmp_path: Path) -> None:
    mark, evil, plan = tmp_path / "mark", tmp_path / "evil.py", tmp_path / "plan.yaml"
    evil.write_text(f"open({str(mark)!r}, 'w')\n")
    plan.write_text(f"{key}: [{evil}]\nbase: []\nfactors:\n  features: {{without: [model.features=false]}}\n")
    said = wildtype(command, str(plan), "--folder", str(tmp_path / "out"))
    assert_one_sentence(said, key)
    assert not mark.exists()
