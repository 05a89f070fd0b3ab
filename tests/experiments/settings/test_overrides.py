"""Overrides as people write them: texts with any characters, and lists of them, need no quotes."""

from __future__ import annotations

import contextlib
import string
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from wildtype import _written
from wildtype.characters import hidden_in
from wildtype.errors import ConfigError
from wildtype.experiments.settings.ablation import read_ablation
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.overrides import quoted, read_override
from wildtype.experiments.settings.plans import runs_of_line
from wildtype.experiments.settings.tuning import read_tuning

AS_THEY_STAND = [
    ("data.relations=[my_ppi.csv,screen=hits.csv]", ["my_ppi.csv", "screen=hits.csv"]),
    ("data.embeddings=[mine=f.csv]", ["mine=f.csv"]),
    ("data.embeddings=[ mine=f.csv , 'b, c.csv' ]", ["mine=f.csv", "b, c.csv"]),
    ("data.phenotypes=[Größe]", ["Größe"]),
    ("data.phenotypes=[growth rate (1/h)]", ["growth rate (1/h)"]),
    ('data.phenotypes=[rate (a, b),"x]y=1",5\'UTR!]', ["rate (a, b)", "x]y=1", "5'UTR!"]),
    ("run.folder=runs/lr=0.1", "runs/lr=0.1"),
    ("run.folder=runs/a(1)", "runs/a(1)"),
    ("run.folder=runs/größe", "runs/größe"),
    ("run.folder=/home/Jürgen/it's here", "/home/Jürgen/it's here"),
    ("run.folder=~/x", "~/x"),  # as a shell gives it: nothing is put in its place
    ("run.folder=C:\\Größe\\", "C:\\Größe\\"),
    ("training.wandb_name=a#1 & b!", "a#1 & b!"),
]


def value_of(override: str) -> object:
    """Return the value that a setting has after composing this override."""
    config: object = compose([override])
    for part in override.partition("=")[0].split("."):
        config = getattr(config, part)
    return config


@pytest.mark.parametrize(("override", "value"), AS_THEY_STAND)
def test_texts_are_taken_as_they_stand(override: str, value: object) -> None:
    assert value_of(override) == value


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("run.folder='runs/a, b'", "runs/a, b"),
        ("run.folder=a\\(b", "a(b"),
        ("data.phenotypes=['a, b',c d]", ["a, b", "c d"]),
        ("data.phenotypes=[]", []),
        ("data.rows=null", None),
        ("data.merge={string: [a,b]}", {"string": ["a", "b"]}),
        ("split.hide={other: 0.5}", {"other": 0.5}),
        ("training.learning_rate=1e-4", 1e-4),
    ],
)
def test_what_hydra_reads_keeps_its_meaning(override: str, value: object) -> None:
    assert value_of(override) == value
    assert read_override(override) == OverridesParser.create().parse_override(override)


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("run.folder='größe", "\"run.folder='a, b'\"$"),
        ("run.folder={größe", "\"run.folder='a, b'\"$"),
        ("data.phenotypes=[größe,,b]", r"\"data.phenotypes=\['a, b','c'\]\"$"),
        ("data.phenotypes=[größe(]", r"put each text in quotes and the list in brackets"),
        ("data.merge={größe: [a]}", "give its entries one by one, as in data.merge.NAME=VALUE$"),
        ("seed=1(", "write seed=VALUE, where the value is a whole number$"),
        ("data.rows=1(", "null or a whole number$"),
        ("training.wandb=(true", "true or false$"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_remedy(override: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be read: .*{remedy}") as caught:
        compose([override])
    said = str(caught.value)
    assert override in said.replace("\\'", "'")
    assert not [word for word in ("hydra", "Exception", "token", "viable", "\n") if word in said]


def test_a_text_without_quotes_holds_no_hidden_character() -> None:
    for override in ("run.folder=gr\u00f6\u200be", "data.phenotypes=[a\x1b[31m]", "seed=1\u202e"):
        with pytest.raises(ConfigError, match=r"holds the hidden character \\"):
            compose([override])


def test_a_comma_outside_of_brackets_still_means_several_values() -> None:
    with pytest.raises(ConfigError, match="^'run.folder=größe,b' names several values"):
        compose(["run.folder=größe,b"])
    line = ["data=ecoli-core-growth", "data.phenotypes=[fitness],[Größe]", "run.folder=runs/a(1)"]
    with pytest.raises(ConfigError, match=r"^'seed=1\(' cannot be read: write"):
        runs_of_line([*line, "seed=1("])
    first, second = runs_of_line(line)
    assert (first.config.data.phenotypes, second.config.data.phenotypes) == (["fitness"], ["Größe"])
    assert first.directory == Path("runs/a(1)/data.phenotypes=[fitness]")


@pytest.mark.parametrize(
    ("written", "folder"),
    [("runs/größe=1", "runs/größe=1"), ("'runs/a, b'", "runs/a, b"), ("it's", "it's"), ("~/x", "~/x")],
)
def test_many_runs_are_in_the_directory_that_is_named(written: str, folder: str) -> None:
    found = runs_of_line(["data=ecoli-core-growth", "seed=1,2", f"run.folder={written}"])
    assert found[0].directory == Path(folder) / "seed=1"


def test_plans_take_the_same_texts(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "base: ['data.relations=[ppi=my.csv]']\nfactors: {name: {one: [training.wandb_name=größe]}}\n",
        encoding="utf-8",
    )
    ablation = read_ablation(str(plan))
    changed = ablation.configs["name", "one", "as-base"]
    assert (changed.data.relations, changed.training.wandb_name) == (["ppi=my.csv"], "größe")
    plan.write_text("space: {training.wandb_name: [a(1), größe]}\n", encoding="utf-8")
    search = read_tuning(str(plan))
    assert search.with_params({"training.wandb_name": "a(1)"}).training.wandb_name == "a(1)"


def test_texts_of_python_arrive_as_they_are() -> None:
    for folder in ("runs/größe", "~/x", "runs/a(1),b", "it's"):
        assert value_of(f"run.folder={_written(folder)}") == folder
    names = ["Größe", "growth rate (1/h)", "a=b", "c, d"]
    assert value_of(f"data.phenotypes={_written(names)}") == names


visible_texts = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() == text and not hidden_in(text) and "${" not in text
)


@given(visible_texts)
def test_a_quoted_text_is_read_back(text: str) -> None:
    assert read_override(f"run.folder={quoted(text)}").value() == text


@given(st.lists(visible_texts.filter(lambda text: not set(text) & set("'\"\\,()[]{}")), min_size=1))
def test_lists_without_commas_quotes_and_brackets_need_no_quotes(names: list[str]) -> None:
    # Words that mean a number or null keep that meaning.
    plain = [f"x{name}" for name in names]
    assert read_override(f"data.phenotypes=[{','.join(plain)}]").value() == plain


@given(st.text(string.ascii_letters + string.punctuation + " ö", max_size=12))
def test_any_value_is_read_or_refused_as_an_error_for_users(text: str) -> None:
    for key in ("run.folder", "data.phenotypes", "seed"):
        with contextlib.suppress(ConfigError):
            read_override(f"{key}={text}")
