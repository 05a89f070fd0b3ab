"""`experiment=plan` against its plain definition, in float64: values and gradients."""

from __future__ import annotations

import copy
from functools import cache, reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests.models.plan_definition import encode, phenotype
from tests.tiny import tiny_organism
from wildtype.errors import ConfigError
from wildtype.experiments.settings.compose import compose
from wildtype.models.cell_transformer.config import CellTransformerConfig, check
from wildtype.models.cell_transformer.model import CellTransformer
from wildtype.models.interface import OrganismTensors, organism_tensors
from wildtype.models.registry import settings_of_model
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.batch import MutantBatch

N = 24
SIZES = ["model.width=16", "model.heads=4", "model.dropout=0.0", "model.prior.per_relation=2"]
SETS = [[1, 2], [3], [4, 5, 6], [0, 23], [7, N]]
KINDS = [*[Kind.ABSENT] * 8, Kind.OVEREXPRESSED, Kind.ADDED]


def batch_of_sets() -> MutantBatch:
    ends = np.cumsum([0, *map(len, SETS)])
    return MutantBatch.from_table(MutantTable.build([g for s in SETS for g in s], ends, kind=KINDS))


def write_tested(folder: Path) -> dict[str, np.ndarray]:
    """Files of tested genes and of pairs, tested and untested, and R [N + 1, N + 1] for each."""
    draw = np.random.default_rng(3)
    genes = np.sort(draw.choice(N, 17, replace=False))
    pairs = draw.random((N, N)) < 0.5
    name = [f"G{i:03d}" for i in range(N)]
    (folder / "genes").write_text("".join(f"{name[i]}\n" for i in genes) + "elsewhere\n")
    text = "".join(f"{name[i]}\t{name[j]}\n" for i, j in zip(*pairs.nonzero(), strict=True))
    (folder / "pairs").write_text(text)
    among = np.zeros((N + 1, N + 1), bool)
    among[np.ix_(genes, genes)] = True
    listed = np.zeros((N + 1, N + 1), bool)
    listed[:N, :N] = pairs
    return {"among": among, "listed": listed, "all": np.pad(np.ones((N, N), bool), (0, 1))}


@cache
def plan() -> CellTransformerConfig:
    config = compose(["experiment=plan", *SIZES]).model
    assert isinstance(config, CellTransformerConfig)
    return config


def changed(*overrides: str) -> CellTransformerConfig:
    """The plan's settings with others: without the second that Hydra takes for each set of them."""
    config = copy.deepcopy(plan())
    for override in overrides:
        name, _, value = override.partition("=")
        *path, last = name.split(".")[1:]
        node = reduce(getattr, path, config)
        assert hasattr(node, last), name
        setattr(node, last, yaml.safe_load(value))
    return config


def built(*overrides: str) -> tuple[CellTransformer, OrganismTensors, dict[str, torch.Tensor]]:
    """The model of ``experiment=plan`` in float64, an organism with a foreign gene, and its adjacencies."""
    organism = tiny_organism(N).add_gene("NEW1", features={"shape": [0.5, -1.0, 2.0]})
    torch.manual_seed(0)
    model = CellTransformer(
        changed(*overrides), genes=N + 1, features=0, phenotypes=2, relations=list(organism.graphs)
    )
    model.double()
    graphs = {name: torch.from_numpy(r.adjacency.toarray()).double() for name, r in organism.graphs.items()}
    return model, organism_tensors(model, organism, torch.zeros(N + 1, 0).double()), graphs


@pytest.mark.parametrize("tested", ["tested_genes", "tested_pairs", "untested_pairs", "all"])
@pytest.mark.parametrize(
    ("summary", "mask", "normaliser", "reduction"),
    [
        ("mean", "terms", "all", "mean"),
        ("sum", "terms", "genes", "sum"),
        ("set_attention", "keys", "all", "sum"),
        ("mean", "keys", "genes", "mean"),
    ],
)
def test_plan_is_its_definition(
    tested: str, summary: str, mask: str, normaliser: str, reduction: str, tmp_path: Path
) -> None:
    known = write_tested(tmp_path)
    valid = {name: known["all"] for name in ("physical", "regulatory")}
    more = []
    if tested == "tested_genes":
        more = [f"model.prior.tested={{physical: {tmp_path}/genes, regulatory: {tmp_path}/genes}}"]
        valid = dict.fromkeys(valid, known["among"])
    elif tested != "all":
        field, one_way = tested.removesuffix("_pairs"), known["listed"]
        both = one_way | one_way.T  # a relation without direction has its pairs in both
        if field == "untested":
            both, one_way = ~both & known["all"], ~one_way & known["all"]
        more = [f"model.prior.{field}={{physical: {tmp_path}/pairs, regulatory: {tmp_path}/pairs}}"]
        valid = {"physical": both, "regulatory": one_way}
    model, organism, graphs = built(
        f"model.head.summary={summary}", f"model.prior.mask={mask}", f"model.prior.normaliser={normaliser}",
        f"model.prior.reduction={reduction}", *more,
    )  # fmt: skip
    assert {name: prior.places for name, prior in model.prior_heads.items()} == {
        "physical": [(0, 0), (0, 1)],
        "regulatory": [(0, 2), (1, 0)],
    }
    target, mutants = torch.randn(len(SETS), 2).double(), batch_of_sets()
    weights = dict(model.named_parameters())

    wild_type = model.encode(organism)
    fast_priors = sum(wild_type.weights[name] * loss for name, loss in wild_type.losses.items())
    fast = model(wild_type, mutants).mean
    loss = ((fast - target) ** 2).mean() + fast_priors
    gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)

    # With terms left out, the foreign gene is a key like any other; it has no edges whose terms could be.
    valid_of = {name: torch.from_numpy(R) for name, R in valid.items()}
    cls, h, plain_priors = encode(
        weights, graphs, valid_of, {name: p.places for name, p in model.prior_heads.items()}, 0.1,
        layers=2, heads=4, normaliser=normaliser, mask=mask, reduction=reduction,
    )  # fmt: skip
    kinds, ends = mutants.kind.long(), mutants.offsets.tolist()
    plain = torch.stack([
        phenotype(weights, cls, h, mutants.gene[a:b], kinds[a:b], summary=summary, native=N)
        for a, b in pairwise(ends)
    ])  # fmt: skip
    expected = ((plain - target) ** 2).mean() + plain_priors
    plain_gradients = torch.autograd.grad(expected, list(weights.values()), allow_unused=True)

    torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(fast_priors, plain_priors, rtol=1e-9, atol=1e-11)
    used = [name for name, g in zip(weights, plain_gradients, strict=True) if g is not None]
    assert {"encoder.table", "head.query.weight", "head.kind.weight"} <= set(used)
    for name, a, b in zip(weights, gradients, plain_gradients, strict=True):
        if b is None:
            assert a is None or not a.any(), name
        else:
            torch.testing.assert_close(
                a, b, rtol=1e-7, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}"
            )


def test_every_part_of_the_definition_matters(tmp_path: Path) -> None:
    """No setting of the plan is without effect on a loss or a prediction."""
    known = write_tested(tmp_path)
    assert known["among"].any()
    tested = f"model.prior.tested={{regulatory: {tmp_path}/genes}}"

    def of(*overrides: str) -> tuple[float, torch.Tensor]:
        model, organism, _ = built(tested, *overrides)
        wild_type = model.encode(organism)
        loss = sum(loss.item() for loss in wild_type.losses.values())
        return loss, model(wild_type, batch_of_sets()).mean.detach()

    loss, predicted = of()
    for change in (
        "target=weighted",
        "epsilon=0.1",
        "normaliser=genes",
        "mask=keys",
        "reduction=sum",
        "loss=bce_all",
    ):
        assert of(f"model.prior.{change}")[0] != pytest.approx(loss, rel=1e-6), change
    for change in (
        "summary=sum",
        "scores=normed",
        "foreign=left_out",
        "order=true",
        "heads=2",
        "direct=[sum]",
    ):
        assert not torch.allclose(of(f"model.head.{change}")[1], predicted), change


def test_tested_pairs_are_named_on_the_command_line() -> None:
    config = compose(
        ["experiment=plan", "model.prior.tested.physical=a/file", "model.prior.untested={regulatory: b}"]
    )
    assert config.model.prior.tested == {"physical": "a/file"}
    assert config.model.prior.untested == {"regulatory": "b"}
    config = compose(["model.prior.heads.physical={layer: 0, head: 1, also: [[1, 2]]}"])
    assert config.model.prior.heads["physical"].places == [(0, 1), (1, 2)]
    with pytest.raises(ConfigError, match="both name 'physical'"):
        check(changed("model.prior.tested={physical: a}", "model.prior.untested={physical: a}"))


def test_direct_plan_differs_by_its_direct_path_alone() -> None:
    plan, direct = (compose([f"experiment={name}"]).model for name in ("plan", "plan-direct"))
    assert plan.head.direct == []
    direct.head.direct = []
    assert plan == direct


def test_plan_reads_nothing_but_cls_and_z() -> None:
    model, _, _ = built()
    assert list(model.head.columns) == ["cls", "whole cell"]
    assert not model.config.reads_measurements
    assert not model.config.needs_similarity


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody\n", "holds no gene of this run"),
        ("G001,G002,G003\n", "one gene per line, or two"),
        ("G001\nG002\tG003\n", "one gene per line, or two"),
        ("\n", "is empty"),
        ("G001\n", "no edge at a tested pair"),
    ],
)
def test_files_of_tested_genes_that_do_not_fit_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ConfigError, match=message):
        built(f"model.prior.tested={{regulatory: {tmp_path}/file}}")
    with pytest.raises(ConfigError, match="no such file"):
        built(f"model.prior.untested={{regulatory: {tmp_path}/missing}}")


def test_tested_pairs_of_a_relation_without_a_head_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("G001\n")
    with pytest.raises(ConfigError, match="which no head follows"):
        built("model.prior.relations=[physical]", f"model.prior.tested={{regulatory: {tmp_path}/file}}")


def test_settings_of_before_keep_their_pooling() -> None:
    """Until priors had a target, `set_attention` was what `partners` is now."""
    old = {"prior": {"weight": 0.1}, "head": {"summary": "set_attention", "direct": ["sum", "set_attention"]}}
    config = settings_of_model("cell_transformer", old)
    assert (config.head.summary, config.head.direct) == ("partners", ["sum", "partners"])
    new = {"prior": {"target": "weighted"}, "head": {"summary": "set_attention"}}
    assert settings_of_model("cell_transformer", new).head.summary == "set_attention"


def test_models_whose_genes_asked_as_one_are_refused() -> None:
    """Their weights were learned for the mean of queries: `own_reads` would predict something else."""
    with pytest.raises(ConfigError, match="own_queries, which wildtype has no more"):
        settings_of_model("cell_transformer", {"head": {"summary": "own_queries"}})
