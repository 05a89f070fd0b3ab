"""`wildtype bench`: the fast formulations against their plain definitions, in one run, as ratios."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wildtype.cli.output import Json, console, print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Reference = Annotated[
    bool, typer.Option(help="Also run the plain formulation (slow, up to 12 GiB of memory).")
]


@app.command()
def attention(
    nodes: int = 6607,
    heads: int = 8,
    width: int = 8,
    relations: int = 9,
    edges: int = 2_500_000,
    repeats: int = 5,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """Graph-regularised attention, forward and backward, against plain attention and explicit maps."""
    from benchmarks.attention import bench_attention

    _show(
        bench_attention(
            nodes=nodes,
            heads=heads,
            width=width,
            relations=relations,
            edges=edges,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command()
def step(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_500_000,
    width: int = 64,
    layers: int = 4,
    heads: int = 8,
    batch_size: int = 4096,
    repeats: int = 3,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A training step of the cell transformer with all priors, without, and in the plain formulation."""
    from benchmarks.step import bench_step

    _show(
        bench_step(
            nodes=nodes,
            relations=relations,
            edges=edges,
            width=width,
            layers=layers,
            heads=heads,
            batch_size=batch_size,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command()
def dango(
    nodes: int = 6607,
    relations: int = 6,
    edges: int = 1_700_000,
    width: int = 64,
    batch_size: int = 64,
    repeats: int = 3,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A training step of DANGO, against dense targets, global attention maps and torch_geometric."""
    from benchmarks.dango import bench_dango

    _show(
        bench_dango(
            nodes=nodes,
            relations=relations,
            edges=edges,
            width=width,
            batch_size=batch_size,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command()
def screen(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_500_000,
    candidates: int = 1000,
    order: int = 3,
    width: int = 64,
    heads: int = 4,
    direct: str = "sum,product,set_attention",
    pieces: int = 5,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A screen of all triples of a list, by products of matrices and set by set, against one by one."""
    from benchmarks.screen import bench_screen

    _show(
        bench_screen(
            nodes=nodes,
            relations=relations,
            edges=edges,
            candidates=candidates,
            order=order,
            width=width,
            heads=heads,
            direct=direct,
            pieces=pieces,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command("difference-gnn")
def difference_gnn(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    layers: int = 3,
    batch_size: int = 28,
    tile: int = 0,
    aggregation: str = "sum",
    repeats: int = 1,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A training step of the difference GNN on one shared graph, against one masked graph per mutant."""
    from benchmarks.difference_gnn import bench_difference_gnn

    _show(
        bench_difference_gnn(
            nodes=nodes,
            relations=relations,
            edges=edges,
            width=width,
            layers=layers,
            batch_size=batch_size,
            tile=tile,
            aggregation=aggregation,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command("mask-vs-filter")
def mask_vs_filter(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    batch_size: int = 32,
    repeats: int = 3,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Generating edge masks in five ways; masking all messages against filtering the edges first."""
    from benchmarks.mask_vs_filter import bench_edge_masks

    _show(
        bench_edge_masks(
            nodes=nodes,
            relations=relations,
            edges=edges,
            width=width,
            batch_size=batch_size,
            repeats=repeats,
            seed=seed,
        ),
        json,
    )


@app.command()
def loader(
    mutants: int = 2_000_000,
    genes: int = 6607,
    batch_size: int = 4096,
    repeats: int = 5,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Serving shuffled batches of mutants: slices of arrays against one record per mutant."""
    from benchmarks.loader import bench_loader

    _show(bench_loader(mutants=mutants, genes=genes, batch_size=batch_size, repeats=repeats, seed=seed), json)


@app.command()
def evidence(
    genes: int = 6607,
    measured: int = 100_000,
    queries: int = 50_000,
    repeats: int = 3,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Looking up measured mutants one edit away: compiled loops over hashed sets against Python's own."""
    from benchmarks.evidence import bench_evidence

    _show(bench_evidence(genes=genes, measured=measured, queries=queries, repeats=repeats, seed=seed), json)


@app.command()
def pipelines(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    batch_size: int = 32,
    large_batch: int = 4096,
    mutants: int = 200_000,
    compared: int = 8,
    repeats: int = 5,
    seconds: Annotated[float, typer.Option(help="Time limit of each row.")] = 4.0,
    budget_gib: Annotated[float, typer.Option(help="Memory for the largest batch.")] = 8.0,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """Five representations of a mutant, from the table to a batch: node masks against torch_geometric."""
    from benchmarks.pipelines import bench_pipelines

    report = bench_pipelines(
        nodes=nodes,
        relations=relations,
        edges=edges,
        batch_size=batch_size,
        large_batch=large_batch,
        mutants=mutants,
        compared=compared,
        repeats=repeats,
        seconds=seconds,
        budget_gib=budget_gib,
        seed=seed,
        reference=reference,
    )
    if not json:
        from wildtype.report.profile_tables import pipeline_tables

        console().print(*pipeline_tables(report.pop("rows")))
    _show(report, json)


@app.command()
def store(rows: int = 1_000_000, genes: int = 6607, seed: int = 0, json: Json = False) -> None:
    """Measurements into the store of all experiments, and queried out of it."""
    from benchmarks.store import bench_store

    _show(bench_store(rows=rows, genes=genes, seed=seed), json)


@app.command()
def phenotypes(
    mutants: int = 1484,
    traits: int = 281,
    genes: int = 6000,
    width: int = 64,
    batch_size: int = 256,
    repeats: int = 5,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A training step with a vector of traits and one number per gene; against one row at a time."""
    from benchmarks.phenotypes import bench_phenotypes

    _show(
        bench_phenotypes(
            mutants=mutants,
            traits=traits,
            genes=genes,
            width=width,
            batch_size=batch_size,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command("masked-gin")
def masked_gin(
    nodes: int = 6607,
    relations: int = 9,
    edges: int = 2_530_000,
    width: int = 64,
    mlp_layers: int = 1,
    batch_size: int = 8,
    repeats: int = 3,
    seed: int = 0,
    reference: Reference = True,
    json: Json = False,
) -> None:
    """A graph layer of many mutants as node masks on one graph, against one masked graph per mutant."""
    from benchmarks.masked_gin import bench_masked_gin

    _show(
        bench_masked_gin(
            nodes=nodes,
            relations=relations,
            edges=edges,
            width=width,
            mlp_layers=mlp_layers,
            batch_size=batch_size,
            repeats=repeats,
            seed=seed,
            reference=reference,
        ),
        json,
    )


@app.command()
def planted(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all by default.")
    ] = None,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Ten planted slow-downs, each of which `profile compare` must name as the strongest cause."""
    from benchmarks.planted import bench_planted

    report = bench_planted(names or (), seed=seed)
    if not json:
        from wildtype.report.profile_tables import rows_table

        columns = ("planted", "ratio", "phase", "kind", "share", "unexplained", "found")
        console().print(rows_table(report.pop("rows"), columns))
    _show(report, json)


def _show(result: dict[str, Any], json: bool) -> None:
    if json:
        print_json(result)
        return
    from rich.table import Table

    table = Table("what", "value", show_header=False)
    for name, value in _flat(result):
        table.add_row(name, f"{value:,.4g}" if isinstance(value, float) else str(value))
    console().print(table)


def _flat(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [
            row
            for key, item in value.items()
            for row in _flat(item, f"{prefix} · {key}" if prefix else str(key))
        ]
    return [(prefix, value)]
