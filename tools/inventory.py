"""List everything a user has, read from the code: `python -m tools.inventory > inventory.json`.

Each kind of thing is one section, sorted, one entry per line: commands, their arguments and options,
settings, public names with their parameters, datasets, organisms, presets and what they set, readers, models,
baselines, metrics, figures, page sections, routes of the local page, benches. An entry's value is what else
must not change, such as a default; null where the name is all there is.

`tests/inventory` compares this list with that of an earlier commit.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
import textwrap
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
import yaml

# ---------------------------------------------------------------------------------------------------------
# Everything below this line and above the next one names a module of the package. When code moves, only these
# imports change: the names on the left are what the rest of this file uses.
import wildtype
from benchmarks.__main__ import command_line as benchmarks
from wildtype.cli.commands import app as APP  # the whole command tree
from wildtype.datasets import Dataset
from wildtype.datasets.closed_forms import CLOSED_FORMS
from wildtype.datasets.dataset_record import FORMS
from wildtype.datasets.draws import MAKERS as SPLITS
from wildtype.datasets.plans import ALIASES as SPLIT_ALIASES
from wildtype.errors import WildtypeError
from wildtype.evaluation.metrics import METRICS
from wildtype.evaluation.retrieval import METRICS as RETRIEVAL_METRICS
from wildtype.experiments.profile import PARTS as PHASES
from wildtype.experiments.report import PLOTS
from wildtype.experiments.settings.compose import SETTINGS as PRESETS  # the folder of all preset files
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.slurm_presets import Preset as SlurmPreset
from wildtype.experiments.stored import Run
from wildtype.inference.explaining.explain import SECTIONS as EXPLANATIONS
from wildtype.inference.predictor import Predictor
from wildtype.models.baselines import BASELINES
from wildtype.models.dango.config import ZEROS
from wildtype.models.registry import MODELS, config_class
from wildtype.mutants import Kind
from wildtype.mutants.representations.fast import NAMES as REPRESENTATIONS
from wildtype.nn.attention import attention_with_lse
from wildtype.nn.graph_prior import graph_prior_kl
from wildtype.nn.message_passing import shared_propagate
from wildtype.nn.perturbation_head import perturbation_attention
from wildtype.nn.sparse import SparseOperator
from wildtype.organism import Organism
from wildtype.profiling.evidence_scaling import EvidenceProblemSizes
from wildtype.profiling.synthetic_problem import ProblemSizes
from wildtype.report import serving as SERVING  # the package of the local page: its code names the routes
from wildtype.report.run_sections import SECTIONS
from wildtype.report.serving.server import FILES as PAGE_FILES
from wildtype.settings import declared
from wildtype.sources.catalogue import DATASETS, IN_SILICO, ORGANISMS
from wildtype.sources.publishers import publishers
from wildtype.sources.user_tables.vocabulary import KINDS as TABLE_KINDS
from wildtype.sources.user_tables.vocabulary import MARKS as TABLE_MARKS
from wildtype.sources.user_tables.vocabulary import PHENOTYPES as TABLE_PHENOTYPES
from wildtype.sources.user_tables.vocabulary import Columns as TableColumns
from wildtype.sources.yeast.datasets import RECIPES
from wildtype.sources.yeast.readers import all_readers
from wildtype.sources.yeast.traits.production import RECIPES as TABLE_RECIPES

# The values that a setting, option or field takes, by its name, where the code lists them. Those of settings
# are declared beside the field; of models other than the default, their names end in the model's name.
CHOICES: dict[str, Iterable[str]] = {
    **{found.name: found.choices for found in declared(TrainConfig())},
    **{
        f"{found.name} ({model})": found.choices
        for model in MODELS
        if model != TrainConfig().model.name
        for found in declared(config_class(model)(), "model.")
    },
    "split.name, short": SPLIT_ALIASES,
    "model.zeros (dango)": ZEROS,
    "form of a phenotype": FORMS,
    "section of an explanation": EXPLANATIONS,
    "axis of profile scaling": {*ProblemSizes.AXES, *EvidenceProblemSizes.AXES},
    "part of a step": [f"{part}/{phase}" for part, phases in PHASES.items() for phase in phases],
    "metric of a ranked list": RETRIEVAL_METRICS,
}
BENCHES = typer.main.get_command(benchmarks())  # the command tree of `python -m benchmarks`
# ---------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "wildtype"
Entries = dict[str, Any]


def plain(value: object) -> Any:
    """Return a default as JSON holds it."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def parameters_of(tree: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield (command, parameter, value) of a tree of commands; the parameter is empty for the command itself.

    An option is called by its longest name; its value holds its default and further names.
    """
    groups = getattr(tree, "commands", None)
    yield path, "", None
    for parameter in tree.params:
        value: Entries = {"default": plain(parameter.default)}
        if getattr(parameter, "is_flag", False):
            value["flag"] = True
        if parameter.required:
            value["required"] = True
        if parameter.multiple or parameter.nargs != 1:
            value["many"] = True
        if parameter.param_type_name == "argument":
            yield path, f"<{parameter.name}>", value
            continue
        name = max(parameter.opts, key=len)
        # `--no-x` of `--x` follows the name, so that renaming the option is one change.
        off = f"--no-{name[2:]}"
        further = [opt for opt in (*parameter.opts, *parameter.secondary_opts) if opt not in (name, off)]
        if further:
            value["also"] = further
        if off in parameter.secondary_opts:
            value["switch"] = True
        yield path, name, value
    for name, command in sorted((groups or {}).items()):
        yield from parameters_of(command, f"{path} {name}".strip())


def commands(tree: Any) -> Entries:
    """Return every command by the words that follow `wildtype`."""
    return {path: None for path, parameter, _ in parameters_of(tree) if path and not parameter}


def options(tree: Any) -> Entries:
    """Return every argument and option by its command: `data build --from`."""
    return {
        f"{path} {parameter}".strip(): value for path, parameter, value in parameters_of(tree) if parameter
    }


def fields_of(node: object, prefix: str = "") -> Entries:
    """Return the dotted names of all fields of a settings dataclass, nested ones too, with their defaults."""
    found: Entries = {}
    hints = typing.get_type_hints(type(node))
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        value, name = getattr(node, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            found |= fields_of(value, f"{name}.")
            continue
        found[name] = plain(value)
        # A map from names of the user's data to settings: its fields stand below `<name>`.
        for kind in typing.get_args(hints[field.name]):
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                found |= fields_of(kind(), f"{name}.<name>.")
    return found


def settings() -> Entries:
    """Return every setting of `wildtype train` with its default; those of models end in the model's name."""
    found = {name: value for name, value in fields_of(TrainConfig()).items() if not name.startswith("model.")}
    for model in MODELS:
        found |= {
            f"model.{name} ({model})": value for name, value in fields_of(config_class(model)()).items()
        }
    return found


def signature(function: Any) -> Entries:
    """Return the parameters of a function with their defaults; one without a default holds "required"."""
    return {
        name: "required" if parameter.default is parameter.empty else plain(parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    }


def described(name: str, value: Any) -> Entries:
    """Return the name of something callable and, each as an entry of its own, its parameters."""
    return {name: None} | {f"{name}({key})": default for key, default in signature(value).items()}


def attributes_set(kind: type) -> set[str]:
    """Return the public attributes that ``__init__`` sets."""
    start = kind.__dict__.get("__init__")
    if not isinstance(start, types.FunctionType) or dataclasses.is_dataclass(kind):
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(start)))
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


def members(kind: type) -> Entries:
    """Return the public methods, properties and fields of a class."""
    found: Entries = {}
    names = attributes_set(kind) | (
        {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    )
    found |= {f"{kind.__name__}.{name}": None for name in names if not name.startswith("_")}
    for base in reversed(kind.__mro__[:-1]):
        for name, value in vars(base).items():
            if name.startswith("_"):
                continue
            full = f"{kind.__name__}.{name}"
            if isinstance(value, property | cached_property):
                found[full] = None
            elif callable(value) or isinstance(value, classmethod | staticmethod):
                found |= described(full, getattr(kind, name))
    return found


def public_names() -> Entries:
    """Return what `import wildtype as wt` offers, the classes that it returns, and the stable layers."""
    found: Entries = {"__version__": None}
    for name in wildtype.__all__:
        found |= described(name, getattr(wildtype, name))
    for kind in (Predictor, Run, Organism, Dataset):
        found |= members(kind)
    layers = (attention_with_lse, graph_prior_kl, perturbation_attention, shared_propagate)
    for layer in layers:
        found |= described(f"{layer.__module__}.{layer.__name__}", layer)
    where = f"{SparseOperator.__module__}.{SparseOperator.__name__}"
    return found | described(f"{where}.from_edges", SparseOperator.from_edges)


def flat(value: object, prefix: str = "") -> Entries:
    """Return the leaves of nested maps by their dotted names; a list is a leaf."""
    if isinstance(value, Mapping) and value:
        return {
            name: leaf
            for key, item in value.items()
            for name, leaf in flat(item, f"{prefix}.{key}" if prefix else str(key)).items()
        }
    return {prefix: plain(value)}


def presets() -> Entries:
    """Return every preset by its path without ending: `experiment/yeast-xga`."""
    return {path.relative_to(PRESETS).with_suffix("").as_posix(): None for path in PRESETS.rglob("*.yaml")}


def preset_values() -> Entries:
    """Return what every preset sets: `experiment/yeast-xga: training.epochs`."""
    found: Entries = {}
    for name in presets():
        written = yaml.safe_load((PRESETS / f"{name}.yaml").read_text(encoding="utf-8"))
        found |= {f"{name}: {key}": value for key, value in flat(written or {}).items() if key}
    return found


def readers() -> Entries:
    """Return every reader of publishers' files with its group, and of tables of users."""
    found = {f"{group}/{name}": None for group, name, _ in all_readers()}
    return found | {"genes/genes": None}  # the gene list itself, which every other reader needs


def tables_of_users() -> Entries:
    """Return the words of a user's table: columns, kinds of perturbation, phenotypes, separators, recipes."""
    found: Entries = {f"column {field.name}": field.default for field in dataclasses.fields(TableColumns)}
    found |= {f"word {word}": plain(kind) for kind, words in TABLE_KINDS.items() for word in words}
    found |= {f"phenotype {name}": None for name in TABLE_PHENOTYPES}
    found |= {f"separator {mark}": None for mark in TABLE_MARKS}
    return found | {f"recipe {recipe.name}": None for recipe in TABLE_RECIPES}


def routes() -> Entries:
    """Return the paths that `wildtype serve` answers: those its code names, and the files of the page."""
    assert SERVING.__file__ is not None
    found = {f"/{name}" if name != "page.html" else "/" for name in PAGE_FILES}
    for path in Path(SERVING.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.fullmatch(r"/api/[\w.-]+", text):
                found.add(text)
    return dict.fromkeys(found)


def environment() -> Entries:
    """Return the environment variables that the package reads."""
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = (name for text in texts for name in re.findall(r"""["'](WILDTYPE_[A-Z_]+)["']""", text))
    return dict.fromkeys(names)


def extras() -> Entries:
    """Return what an installation offers to choose from, and the commands it makes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {f"extra {name}": None for name in project["optional-dependencies"]} | {
        f"script {name}": None for name in project["scripts"]
    }


KINDS: dict[str, Callable[[], Entries]] = {
    "commands": lambda: commands(typer.main.get_command(APP)),
    "options": lambda: options(typer.main.get_command(APP)),
    "settings": settings,
    "public_names": public_names,
    "datasets": lambda: {name: organism for name, organism in DATASETS.items()},
    "organisms": lambda: {name: "in silico" if name in IN_SILICO else "publishers" for name in ORGANISMS},
    "dataset_recipes": lambda: dict.fromkeys(RECIPES),
    "choices": lambda: dict.fromkeys(
        f"{name}: {value}" for name, values in CHOICES.items() for value in values
    ),
    "presets": presets,
    "preset_values": preset_values,
    "slurm_preset": lambda: {
        field.name: None if field.default is dataclasses.MISSING else plain(field.default)
        for field in dataclasses.fields(SlurmPreset)
    },
    "publishers": lambda: dict.fromkeys(publishers()),
    "publishers_files": lambda: {
        f"{publisher.name}/{remote.name}": plain(remote.aliases) or None
        for publisher in publishers().values()
        for remote in publisher.files
    },
    "readers": readers,
    "tables_of_users": tables_of_users,
    "models": lambda: dict.fromkeys(MODELS),
    "baselines": lambda: dict.fromkeys(BASELINES),
    "closed_forms": lambda: dict.fromkeys(CLOSED_FORMS),
    "splits": lambda: dict.fromkeys(SPLITS),
    "kinds_of_perturbation": lambda: {kind.name.lower(): int(kind) for kind in Kind},
    "representations": lambda: dict.fromkeys(REPRESENTATIONS),
    "metrics": lambda: dict.fromkeys(METRICS),
    "figures": lambda: dict.fromkeys(PLOTS),
    "page_sections": lambda: dict.fromkeys(key for key, _, _ in SECTIONS),
    "routes": routes,
    "benches": lambda: commands(BENCHES) | options(BENCHES),
    "environment": environment,
    "extras": extras,
}
"""What makes each section."""


def inventory() -> dict[str, Entries]:
    """Return every section, its entries sorted by name."""
    return {kind: dict(sorted(make().items())) for kind, make in KINDS.items()}


def written(found: Mapping[str, Entries]) -> str:
    """Return sections as JSON with one entry per line."""

    def line(name: str, value: object) -> str:
        return f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"

    sections = (
        f' "{kind}": {{\n' + ",\n".join(line(*entry) for entry in entries.items()) + "\n }"
        for kind, entries in found.items()
    )
    return "{\n" + ",\n".join(sections) + "\n}\n"


if __name__ == "__main__":
    try:
        print(written(inventory()), end="")
    except WildtypeError as error:
        sys.exit(f"inventory: {error}")
