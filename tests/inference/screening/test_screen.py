from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import wildtype as wt
from tests.command import assert_one_sentence, wildtype
from tests.inference.screening.asked import changed, screened
from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError, GeneSetError, UnknownGeneError
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.inference.core import Source
from wildtype.inference.predictor import Predictor
from wildtype.inference.screening import screen, stream
from wildtype.models.cell_transformer.config import CellTransformerConfig, EvidenceConfig, HeadConfig
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.mutants import Kind
from wildtype.tables import TAKEN


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "PIECE", 100)


def brute(predictor: Predictor, sets: list[tuple[str, ...]]) -> pd.DataFrame:
    return predictor.predict(sets).sort_values("epsilon", kind="stable", ignore_index=True)


@pytest.mark.parametrize("order", [2, 3])
def test_a_screen_is_brute_force(predictor: Predictor, order: int) -> None:
    every = list(combinations(predictor.genes.names, order))
    found = screened(predictor, order, top=25)
    expected = brute(predictor, every)["epsilon"].to_numpy()
    low, high = (found[found["direction"] == d] for d in ("low", "high"))
    np.testing.assert_allclose(low["epsilon"], expected[:25], atol=1e-6)
    np.testing.assert_allclose(high["epsilon"], expected[::-1][:25], atol=1e-6)
    assert low["rank"].tolist() == list(range(1, 26))
    assert found["genes"].nunique() == 50
    assert found.attrs["count"] == found.attrs["asked"] == len(every)
    assert found.attrs["left_out"] == {}


@pytest.mark.parametrize("summary", ["sum", "own_reads"])
def test_tables_of_members_give_what_one_by_one_gives(
    predictor: Predictor, summary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "OFTEN", 1)
    fast = without_evidence(predictor, summary)
    slow = without_evidence(predictor, summary)
    monkeypatch.setattr(slow.checkpoint.model, "combinations", lambda *_: None)
    among = ["G001", "G002:overexpressed", "G004", "G005", "G007", "G008", "G011", "G023"]
    queries = [["G001", "G002"], ["G003", "G005"], ["G001", "G004"]]
    wishes = [
        {"order": 2}, {"order": 3, "among": among, "unmeasured": True}, {"queries": queries},
        {"order": 3, "require": ["G003"], "min_linkage_kb": 20.0},
    ]  # fmt: skip
    for wish in wishes:
        asked: list[int] = []
        combine = fast.checkpoint.combinations

        def counted(*words: object, combine: Callable[..., Any] = combine) -> Callable[..., Any]:
            answer = combine(*words)
            return lambda sets: asked.append(len(sets)) or answer(sets)  # noqa: B023

        with monkeypatch.context() as patch:
            patch.setattr(fast.checkpoint, "combinations", counted)
            found = screened(fast, top=30, **wish)  # type: ignore[arg-type]
        expected = screened(slow, top=30, **wish)  # type: ignore[arg-type]
        assert sum(asked) == found.attrs["asked"] == expected.attrs["asked"] > 0
        np.testing.assert_allclose(found["epsilon"], expected["epsilon"], atol=1e-6)
        assert found.attrs == expected.attrs
    assert fast.core.combinations(np.arange(24), np.zeros(24, np.uint8), 2) is not None
    assert predictor.core.combinations(np.arange(24), np.zeros(24, np.uint8), 2) is None  # it reads evidence


def test_few_mutants_per_member_are_not_worth_tables(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = without_evidence(predictor, "own_reads")
    monkeypatch.setattr(fast.checkpoint, "combinations", lambda *_: pytest.fail("tables were made"))
    assert screened(fast, queries=[["G001"]]).attrs["asked"] == 23


def without_evidence(predictor: Predictor, summary: str) -> Predictor:
    """Return a predictor with weights of no meaning that reads relations, but no evidence."""
    torch.manual_seed(0)
    head = HeadConfig(heads=2, summary=summary)
    config = CellTransformerConfig(width=8, layers=1, heads=4, head=head, evidence=EvidenceConfig(tokens=0))
    checkpoint = predictor.checkpoint
    similarity = checkpoint.organism.similarity
    assert similarity is not None
    model = CellTransformer(
        config,
        genes=24,
        features=checkpoint.organism.features.shape[1],
        phenotypes=checkpoint.outputs,
        relations=checkpoint.relations,
        channels=len(similarity.channels),
        traits=len(similarity.trait_names),
    )
    return Predictor(replace(checkpoint, model=model))


def test_queries_are_crossed_with_candidates(predictor: Predictor) -> None:
    among = ["G001", "abc2", "G003", "G004"]
    found = screened(
        predictor, among=among, queries=[["G001", "G002"], ["G001", "G003"]], top=100, direction="low"
    )
    sets = {"G001,G002,G003", "G001,G002,G004", "G001,G003,G004"}
    assert set(found["genes"]) == sets
    assert found.attrs["count"] == 8
    assert found.attrs["left_out"] == {stream.TWICE: 4, stream.AGAIN: 1}
    assert found["epsilon"].is_monotonic_increasing


def test_what_is_done_to_a_candidate(predictor: Predictor) -> None:
    found = screened(predictor, 2, ["G001", "G002:overexpressed", "G002:absent"], top=9, direction="high")
    assert sorted(found["kinds"]) == ["absent,absent", "absent,overexpressed"]
    assert found.attrs["left_out"] == {stream.TWICE: 1}
    for _, row in found.iterrows():
        genes = [f"{g}:{k}" for g, k in zip(row["genes"].split(","), row["kinds"].split(","), strict=True)]
        assert predictor.predict([genes])["epsilon"].iloc[0] == pytest.approx(row["epsilon"], abs=1e-6)


def test_no_gene_stands_in_too_many_rows(predictor: Predictor) -> None:
    found = screened(predictor, 2, top=12, direction="low", max_per_gene=2)
    counts = found["genes"].str.split(",").explode().value_counts()
    assert counts.max() <= 2
    every = brute(predictor, list(combinations(predictor.genes.names, 2)))
    used: dict[str, int] = {}
    expected = []
    for genes in every["genes"]:
        pair = genes.split(",")
        if all(used.get(g, 0) < 2 for g in pair) and len(expected) < 12:
            expected.append(genes)
            used |= {g: used.get(g, 0) + 1 for g in pair}
    assert found["genes"].tolist() == expected
    assert found.attrs["short"] == []


def test_genes_of_queries_may_stand_in_every_row(predictor: Predictor) -> None:
    found = screened(predictor, queries=[["G001"]], top=5, direction="low", max_per_gene=1)
    assert len(found) == 5


def test_the_list_says_how_many_hits_to_expect(predictor: Predictor) -> None:
    (phenotype,) = predictor.checkpoint.phenotypes
    chance = {**phenotype, "form": "class", "of_cross": "negative"}
    hits = Predictor(replace(predictor.checkpoint, phenotypes=[chance]))
    found = screened(hits, 2, top=7)
    high = found[found["direction"] == "high"]
    assert found.attrs["expected_hits"] == {"epsilon": pytest.approx(high["epsilon"].sum())}
    assert screened(predictor, 2, top=7).attrs["expected_hits"] == {}


def test_a_killed_screen_goes_on(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = screened(predictor, 3, top=7)
    state, pieces = tmp_path / "state", []

    def ask(asker: stream.ScreenWorker, piece: int) -> stream.ScreenResult:
        if len(pieces) == 6:
            raise KeyboardInterrupt
        pieces.append(piece)
        return kept(asker, piece)

    kept = stream.ScreenWorker.__call__
    monkeypatch.setattr(stream.ScreenWorker, "__call__", ask)
    with pytest.raises(KeyboardInterrupt):
        screened(predictor, 3, top=7, state=state)
    assert pieces == list(range(6))
    monkeypatch.setattr(
        stream.ScreenWorker, "__call__", lambda *words: pieces.append(words[1]) or kept(*words)
    )
    again = screened(predictor, 3, top=7, state=state)
    assert pieces == list(range(21))
    pd.testing.assert_frame_equal(again, whole)
    assert again.attrs == whole.attrs


def test_a_state_of_another_screen_or_a_damaged_one_is_refused(predictor: Predictor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    screened(predictor, 2, top=7, state=state)
    with pytest.raises(ConfigError, match="of another screen or another model: remove it"):
        screened(predictor, 2, top=8, state=state)
    other = changed(predictor, part=np.zeros_like(predictor.checkpoint.known.part))
    with pytest.raises(ConfigError, match="of another screen or another model"):
        screened(other, 2, top=7, state=state)
    content = state.read_bytes()
    state.write_bytes(content[: len(content) // 2])
    with pytest.raises(ConfigError, match="is damaged"):
        screened(predictor, 2, top=7, state=state)


@pytest.mark.parametrize("name", ["among", "exclude", "require", "include", "phenotypes"])
def test_one_text_is_no_list_of_names(predictor: Predictor, name: str) -> None:
    """It was taken apart letter by letter."""
    with pytest.raises(ConfigError, match=rf"{name}='G001' is one text: .* such as \['G001'\]"):
        predictor.screen(**{name: "G001"})


@pytest.mark.parametrize("wish", [{"top": "5"}, {"order": 2.0}, {"max_per_gene": True}])
def test_counts_are_whole_numbers(predictor: Predictor, wish: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is no whole number"):
        predictor.screen(**wish)


def test_a_device_that_is_refused_leaves_no_state(predictor: Predictor, tmp_path: Path) -> None:
    """The corrected command met the state of another screen."""
    state = tmp_path / "state"
    with pytest.raises(ConfigError, match="device='cuda:99': torch sees"):
        screened(predictor, 2, top=7, state=state, device="cuda:99")
    assert not state.exists()
    screened(predictor, 2, top=8, state=state)
    assert state.exists()


@pytest.mark.slow
def test_several_processes_give_the_same(predictor: Predictor) -> None:
    frame = pd.DataFrame({"genes": ["G001,G002"], "value": [0.3]})
    one = screened(predictor, 3, top=9)
    two = screened(predictor, 3, top=9, processes=2)
    pd.testing.assert_frame_equal(one, two)
    with pytest.raises(ConfigError, match="take processes=1"):
        screened(changed(predictor, metabolic=None), 3, processes=2)
    assert isinstance(predictor.source, Source)
    assert len(predictor.with_evidence(frame).source.evidence) == 1  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_process_that_dies_is_one_sentence(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_answer", _die)
    with pytest.raises(ConfigError, match="a process of the screen died"):
        screened(predictor, 3, processes=2)


def _die(_: int) -> stream.ScreenResult:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.parametrize(
    ("wish", "error", "message"),
    [
        ({"order": 1}, ConfigError, "epsilon needs at least 2 genes, and mutants of this screen have 1"),
        ({"order": 30}, ConfigError, "there are 24 genes to choose from, and a mutant takes 30"),
        ({"among": ["G001", "G0x"]}, UnknownGeneError, "candidate 2: 'G0x'"),
        ({"among": []}, GeneSetError, "names no genes"),
        ({"queries": [["G001"], ["G001", "G002"]]}, GeneSetError, "queries have 1 to 2 genes"),
        ({"queries": [["G001"]], "order": 3}, ConfigError, "order=3, but queries of 1"),
        ({"direction": "up"}, ConfigError, "direction='up' is not known"),
        ({"top": 0}, ConfigError, "top=0"),
        ({"max_per_gene": 0}, ConfigError, "max_per_gene=0"),
        ({"min_linkage_kb": -1.0}, ConfigError, "min_linkage_kb=-1"),
        ({"min_linkage_kb": 0.0}, ConfigError, "give a distance above 0, or include linked genes"),
        ({"min_linkage_kb": 9.0, "include": ["linked"]}, ConfigError, "give one of the two"),
        ({"include": ["sick"]}, ConfigError, "include='sick' is not known; known: lethal, linked"),
        ({"phenotypes": ["growth"]}, ConfigError, "ranks by no phenotype 'growth'; it predicts epsilon"),
        ({"condition": "heat"}, ConfigError, "knows no condition 'heat'"),
        ({"interval": 1.5}, ConfigError, "1.5"),
        ({"processes": 0}, ConfigError, "processes=0"),
        ({"exclude": ["nobody"]}, UnknownGeneError, "nobody"),
    ],
)
def test_errors(predictor: Predictor, wish: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        screened(predictor, **wish)  # type: ignore[arg-type]


def test_the_command(tiny_run: Path, predictor: Predictor, tmp_path: Path) -> None:
    out, among = tmp_path / "best.csv", tmp_path / "among.txt"
    among.write_text("G001 G002\nabc3\nG004\n")
    said = wildtype(
        "screen",
        str(tiny_run),
        "--order",
        "3",
        "--among",
        str(among),
        "--include",
        "linked",
        "--top",
        "2",
        "--interval",
        "0.9",
        "-o",
        str(out),
    )
    assert said.returncode == 0
    assert "4 mutants in the design" in said.stderr
    assert "4 mutants predicted" in said.stderr
    frame = pd.read_csv(out)
    expected = screened(predictor, 3, ["G001", "G002", "abc3", "G004"], top=2, interval=0.9)
    assert frame["genes"].tolist() == expected["genes"].tolist()
    assert {"epsilon_low", "epsilon_high", "single_fitness", "linkage_kb"} <= set(frame.columns)
    assert {name for name in frame.columns if not name.startswith("epsilon")} <= TAKEN
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    said = wildtype(
        "screen", str(tiny_run), "--queries", "G001", "--top", "1", "--direction", "low", "--json",
        "--include", "linked",
    )  # fmt: skip
    assert said.returncode == 0
    (row,) = json.loads(said.stdout)
    expected = screened(predictor, queries=[["G001"]], top=1, direction="low")
    assert row["genes"] == expected["genes"].iloc[0]
    assert_one_sentence(wildtype("screen", str(tiny_run), "--among", "no.csv"), "no.csv")
    assert_one_sentence(wildtype("screen", str(tiny_run), "-o", "best.doc"), "best.doc", ".parquet")


def test_rows_of_the_design_that_stand_for_nothing(predictor: Predictor) -> None:
    mutants = stream.Screen(
        design=_Same(),
        gene=np.arange(3),
        kind=np.zeros(3, np.uint8),
        doses=np.full(len(Kind), np.nan, np.float32),
        constraints=stream.Constraints(),
        outputs=(0,),
        directions=("low",),
        keep=1,
    ).mutants(np.arange(3))
    assert (mutants.rows.tolist(), mutants.new.tolist()) == ([True, False, False], [True, True, False])
    assert mutants.table.sets() == [(0, 1)]


class _Same:
    count, order = 3, 2

    def members(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([[1, 0], [2, 2], [0, 2]])[numbers], np.array([True, True, False])[numbers]

    def describe(self) -> list[object]:
        return []


@pytest.fixture(scope="module")
def of_fitness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run on singles and pairs, which predicts their fitness."""
    folder = tmp_path_factory.mktemp("runs") / "fitness"
    words = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=2",
             "baselines=[mean]", f"run.folder={folder}", "run.progress=false", "run.replicates=10",
             "data.name=tiny-growth", "data.phenotypes=[fitness]"]  # fmt: skip
    train(compose(words), dataset=tiny_dataset())
    return folder


def test_rank_by_interaction_is_the_prediction_minus_the_product_of_singles(of_fitness: Path) -> None:
    predictor = wt.load(of_fitness)
    names = predictor.genes.names
    every = list(combinations(names, 2))
    alone = dict(zip(names, predictor.predict([[name] for name in names])["fitness"], strict=True))
    expected = np.array([alone[a] * alone[b] for a, b in every])
    interaction = predictor.predict(every)["fitness"].to_numpy() - expected
    found = screened(predictor, 2, top=25, rank="interaction", max_per_gene=30)
    for direction, order in (("low", np.argsort(interaction)), ("high", np.argsort(-interaction))):
        rows = found[found["direction"] == direction]
        np.testing.assert_allclose(rows["interaction"], interaction[order[:25]], atol=1e-6)
        genes = [tuple(text.split(",")) for text in rows["genes"]]
        np.testing.assert_allclose(rows["expected"], [alone[a] * alone[b] for a, b in genes], atol=1e-6)
        np.testing.assert_allclose(rows["fitness"] - rows["expected"], rows["interaction"], atol=1e-12)
    low = screened(predictor, 2, top=25).query("direction == 'low'")["genes"].tolist()
    assert low != found.query("direction == 'low'")["genes"].tolist()
    queried = predictor.screen(
        queries=[[names[3]]], among=names[5:9], rank="interaction", include=["linked"], direction="high"
    )
    assert queried["interaction"].is_monotonic_decreasing
    assert len(queried) == 4


def test_rank_by_interaction_in_shards_is_that_of_one_process(of_fitness: Path, tmp_path: Path) -> None:
    options = ["--order", "2", "--top", "5", "--rank", "interaction", "--include", "linked", "-o"]
    assert wildtype("screen", str(of_fitness), *options, str(tmp_path / "one.csv")).returncode == 0
    for number in ("0", "1"):
        shard = ["--shards", "2", "--shard", number]
        done = wildtype("screen", str(of_fitness), *options, str(tmp_path / "s.csv"), *shard)
        assert done.returncode == 0, done.stderr
    done = wildtype("screen", "--merge", str(tmp_path / "s.csv.shards"), "-o", str(tmp_path / "s.csv"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()


def test_rank_by_interaction_needs_single_mutants(predictor: Predictor, tiny_run: Path) -> None:
    with pytest.raises(ConfigError, match="only epsilon: rank by the prediction"):
        predictor.screen(2, rank="interaction")
    with pytest.raises(ConfigError, match="did you mean interaction"):
        predictor.screen(2, rank="interactions")
    said = wildtype("screen", str(tiny_run), "--rank", "interaction")
    assert_one_sentence(said, "rank='interaction'", "only epsilon")


def test_choose_diverse_halves_what_a_gene_has_already(predictor: Predictor) -> None:
    every = brute(predictor, list(combinations(predictor.genes.names, 2)))
    pool = every[: 4 * 50]
    left = {
        tuple(g.split(",")): pool["epsilon"].iloc[-1] - e
        for g, e in zip(pool.genes, pool.epsilon, strict=True)
    }
    expected: list[tuple[str, ...]] = []
    used: dict[str, int] = {}
    while len(expected) < 4:
        best = max(left, key=lambda genes: left[genes] * 0.5 ** sum(used.get(g, 0) for g in genes))
        del left[best]
        expected.append(best)
        used |= {gene: used.get(gene, 0) + 1 for gene in best}
    found = screened(predictor, 2, top=4, direction="low", choose="diverse")
    assert [tuple(text.split(",")) for text in found["genes"]] == expected
    assert found["rank"].tolist() == [1, 2, 3, 4]


def test_choose_explore_ranks_by_the_end_of_the_interval(predictor: Predictor) -> None:
    for direction, end, sign in (("low", "epsilon_low", 1), ("high", "epsilon_high", -1)):
        every = predictor.predict(list(combinations(predictor.genes.names, 2)), interval=0.5)
        pool = every.iloc[np.argsort(sign * every["epsilon"], kind="stable")[: 6 * 50]]
        expected = np.sort(sign * pool[end])[:6]
        found = screened(predictor, 2, top=6, direction=direction, choose="explore", interval=0.5)
        np.testing.assert_allclose(sign * found[end], expected, atol=1e-6)


def test_choices_that_are_refused(predictor: Predictor, tiny_run: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean explore"):
        predictor.screen(2, choose="explor")  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r"choose='explore' ranks by the ends of intervals: no interval for"
    ):
        screened(predictor, 3, choose="explore", top=3)
    said = wildtype("screen", str(tiny_run), "--choose", "most")
    assert_one_sentence(said, "choose='most' is not known")


def test_single_fitness_in_a_screen_is_that_of_the_same_kind(predictor: Predictor) -> None:
    found = screened(predictor, among=["G001:overexpressed", "G002"], top=1, direction="low")
    single = predictor.checkpoint.known.single_fitness
    assert found["single_fitness"].tolist() == [f",{single[2]:.3g}"]
    assert np.isnan(found["epsilon_measured"]).all()
