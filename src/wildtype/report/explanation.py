"""Explanations of models as tables: heads, latents, and the parts of the prediction of a mutant."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from wildtype.errors import ConfigError
from wildtype.files import writing
from wildtype.inference.explaining.explain import SECTIONS, Explanation
from wildtype.inference.explaining.free_heads import LEVEL, LayerClaim
from wildtype.inference.explaining.heads import Against
from wildtype.inference.explaining.latents import Cluster, Latents, Overrepresented
from wildtype.inference.explaining.members import OverModels
from wildtype.inference.explaining.mutant import BEYOND, LOGIT, SUBSETS, MutantExplained
from wildtype.report.text_table import NONE, decimals, plain_text, print_line, print_table

FORMATS = (".svg", ".png", ".pdf")
WIDE = 110
"""Columns of a terminal below which tables leave out what JSON has, too."""
NAMED = 3
"""Genes, sets and phenotypes of a cluster that a table names; JSON has more."""
TITLES = {
    "heads": "Regularised heads",
    "free": "Free heads",
    "latents": "Whole-cell latents",
    "mutants": "Mutants",
}


def print_explanation(found: Explanation, console: Console) -> None:
    """Print every section that was asked for, and what does not apply."""
    count = len(found.models)
    what = f"{count} models" if count > 1 else "1 model"
    print_line(f"{found.model} of {found.organism}, trained on {found.dataset}: {what}", console, "bold")
    for number, path in enumerate(found.runs, 1):
        console.print(plain_text(f"{number}: {path}", console, "dim"), soft_wrap=True)
    _remarks(found, "general", console)
    for section in SECTIONS:
        if section not in found.asked.sections or (section == "mutants" and not found.asked.sets):
            continue
        console.print()
        if section != "mutants":
            print_line(TITLES[section], console, "bold")
        _remarks(found, section, console)
        if section == "heads" and found.heads:
            _print_heads(found, console)
        elif section == "free" and found.free:
            _print_layers(found, console)
        elif section == "latents" and found.latents is not None:
            _print_latents(found.latents, count, console)
        elif section == "mutants":
            for mutant in found.mutants:
                _print_mutant(mutant, count, console)


def _remarks(found: Explanation, section: str, console: Console) -> None:
    for text in found.remarks.get(section, ()):
        console.print(plain_text(text, console), soft_wrap=True)


def over_models(value: OverModels, digits: int = 2) -> str:
    """Return mean ± sd over models, or the one there is."""
    if math.isnan(value.sd):
        return decimals(value.mean, digits)
    return f"{decimals(value.mean, digits)} ± {value.sd:.{digits}f}"


def _print_heads(found: Explanation, console: Console) -> None:
    measures = {"AP": "average_precision", "recall at degree": "recall_at_degree"}
    if console.width >= WIDE:
        measures["attention on it"] = "mass"
    columns = ["head", "relation", "rows", *(heading for name in measures for heading in (name, "random"))]
    rows = []
    for head in found.heads:
        name = head.relation + (" (from targets)" if head.reads == "targets" else "")
        row = [f"{head.layer}.{head.head}", name, f"{head.asked:,}"]
        for field in measures.values():
            row += _against(getattr(head, field))
        rows.append(row)
    print_table(console, columns, rows, numeric=range(2, len(columns)))
    print_line(
        "head: layer.head; AP: average precision of attention over the other genes, mean over rows with "
        "neighbours; recall at degree: share of neighbours among the m most attended genes of a row with m "
        f"neighbours; random: {found.asked.graphs} random graphs with the same degrees, mean ± SD"
        + _over(found),
        console,
        "dim",
    )


def _over(found: Explanation) -> str:
    return f"; ± beside the others: SD over {len(found.models)} models" if len(found.models) > 1 else ""


def _against(measure: Against) -> list[str]:
    random = f"{decimals(measure.random_mean)} ± {decimals(measure.random_sd)}"
    return [over_models(measure.found), random]


def _print_layers(found: Explanation, console: Console) -> None:
    several = len(found.models) > 1
    columns = [
        "layer",
        "its free heads attend to partners in",
        "fold",
        "untrained",
        "found in",
        "its own head",
    ]
    rows = []
    for claim in found.layers:
        named = claim.name if claim.kind == "relation" else f"{claim.kind}: {claim.name}"
        given = NONE if claim.given_to is None else "{}.{}".format(*claim.given_to)
        rows.append(
            [
                str(claim.layer),
                named,
                over_models(claim.fold),
                decimals(claim.untrained),
                _found_in(claim),
                given,
            ]
        )
    print_table(console, columns, rows, numeric=range(2, 6))
    for layer in sorted({head.layer for head in found.free}):
        trained = [head for head in found.free if head.layer == layer and head.model in found.models]
        shares = [head.attended for head in trained]
        heads = len(shares) // len(found.models)
        print_line(
            f"layer {layer}: {heads} free head{'s' if heads > 1 else ''}{' per model' if several else ''}; "
            f"{min(shares):.0%} to {max(shares):.0%} of all genes are among the {found.asked.attended} most "
            f"attended of any gene",
            console,
        )
    print_line(
        f"fold: edges from a gene to one of its {found.asked.attended} most attended genes, and genes of a "
        f"set that attend to another of it, over what is expected if genes of equal degrees exchange lists "
        f"({found.asked.exchanges} times), of the head where it is largest"
        f"{', mean ± SD over models' if several else ''}; untrained: with weights drawn anew, which is what "
        f"features alone make; found in: models with a free head at q < {LEVEL:g} (Benjamini-Hochberg); its "
        f"own head: which follows that relation",
        console,
        "dim",
    )


def _found_in(claim: LayerClaim) -> str:
    return f"{claim.found_in} of {claim.models}"


def _print_latents(found: Latents, models: int, console: Console) -> None:
    first, second = found.explained
    print_line(
        f"z_S of {len(found.genes):,} mutants, {found.drawn}; two components hold {first:.0%} and "
        f"{second:.0%} of the variance; {len(found.clusters)} clusters (k-means), the number with the "
        f"largest mean silhouette of "
        + ", ".join(f"{count}: {value:.2f}" for count, value in found.silhouette)
        + ("; clusters are those of the first model" if models > 1 else ""),
        console,
    )
    if models > 1:
        print_line(
            f"agreement of {models} models: distances between mutants, Spearman "
            f"{decimals(found.distances_agree)}; clusters, adjusted Rand index "
            f"{decimals(found.clusters_agree)}",
            console,
        )
    columns = ["cluster", "mutants", "perturbed more often than elsewhere", "measured: median [quartiles]"]
    rows = [[str(c.number), f"{c.mutants:,}", _enriched(c, models), _phenotypes(c)] for c in found.clusters]
    numeric = [0, 1]
    if models > 1:
        columns.append("overlap")
        numeric.append(4)
        for row, cluster in zip(rows, found.clusters, strict=True):
            row.append(over_models(cluster.overlap))
    print_table(console, columns, rows, numeric=numeric)
    told = "×: share in the cluster over share of all mutants, hypergeometric q < 0.05"
    if models > 1:
        told += "; in brackets: models whose most similar cluster has it, too; overlap: Jaccard index with it"
    print_line(told, console, "dim")


def _enriched(cluster: Cluster, models: int) -> str:
    def named(one: Overrepresented) -> str:
        kind = "" if one.kind == "gene" else f"{one.kind} "
        agree = f" ({one.found_in} of {models})" if models > 1 else ""
        return f"{kind}{one.name} ×{one.fold:.1f}{agree}"

    chosen = [*cluster.genes[:NAMED], *cluster.sets[:NAMED]]
    return ", ".join(named(one) for one in chosen) or NONE


def _phenotypes(cluster: Cluster) -> str:
    told = [
        f"{one.phenotype} {decimals(one.median, 3)} [{decimals(one.low, 3)}, {decimals(one.high, 3)}] "
        f"({one.count:,})"
        for one in cluster.phenotypes[:NAMED]
    ]
    if len(cluster.phenotypes) > NAMED:
        told.append(f"{len(cluster.phenotypes) - NAMED} more")
    return "; ".join(told) or NONE


def _print_mutant(found: MutantExplained, models: int, console: Console) -> None:
    done = ", ".join(f"{gene} {kind}" for gene, kind in zip(found.genes, found.kinds, strict=True))
    print_line(f"{done}: {found.phenotype}, condition {found.condition}", console, "bold")
    said = _number(found.predicted, 4)
    if found.unit == LOGIT:
        chance = OverModels.of([1 / (1 + math.exp(-value)) for value in found.predicted.each])
        said = f"probability {over_models(chance)}, a logit of {said}"
    told = [f"predicted {said}"]
    if not math.isnan(found.measured):
        told.append(f"measured {_signed(found.measured, 4)}")
    told.append(
        f"the network reads {_number(found.baseline, 4)} off the wild type and "
        f"{_number(found.network, 4)} off the mutant"
    )
    print_line("; ".join(told), console)
    for note in found.notes:
        print_line(note, console)
    if found.method == SUBSETS:
        _print_subsets(found, models, console)
        return
    each = zip(*(part.integrated.each for part in found.parts), strict=True)
    total = OverModels.of([sum(values) for values in each])
    digits = _digits([part.integrated for part in found.parts])
    rows = [[p.name, _number(p.integrated, digits), _number(p.linear, digits)] for p in found.parts]
    rows.append(["sum", _number(total, digits), ""])
    if any(abs(value) >= 0.5 * 10**-digits for value in found.beyond.each):
        rows.append([f"{BEYOND} (not explained)", _number(found.beyond, digits), ""])
    print_table(console, ["part of the head's input", "integrated", "linear"], rows, numeric=(1, 2))
    spread = f"; mean ± SD over {models} models" if models > 1 else ""
    print_line(
        f"integrated: by integrated gradients on the straight path from the wild type ({found.steps} points; "
        f"the sum is right to {abs(found.error):.0e}); linear: by the gradient at the mutant; unit: "
        f"{found.unit}{spread}",
        console,
        "dim",
    )
    if found.perturbed:
        digits = _digits([one.integrated for one in found.perturbed])
        print_table(
            console,
            ["perturbed gene", "by itself, integrated"],
            [[f"{one.gene} {one.kind}", _number(one.integrated, digits)] for one in found.perturbed],
            numeric=(1,),
        )
        print_line(
            f"by itself: its share of {'; '.join(found.to_genes)}. Other parts are the set's", console, "dim"
        )
    if found.cell:
        _print_cell(found, models, console)
    if found.tokens:
        _print_tokens(found, models, console)
    console.print()


def _print_subsets(found: MutantExplained, models: int, console: Console) -> None:
    digits = _digits([one.integrated for one in found.perturbed])
    each = zip(*(one.integrated.each for one in found.perturbed), strict=True)
    rows = [[f"{one.gene} {one.kind}", _number(one.integrated, digits)] for one in found.perturbed]
    rows.append(["sum", _number(OverModels.of([sum(values) for values in each]), digits)])
    print_table(console, ["perturbed gene", "contribution"], rows, numeric=(1,))
    spread = f"; mean ± SD over {models} models" if models > 1 else ""
    print_line(
        f"contribution: Shapley value, the mean effect of perturbing a gene over all orders of the set, from "
        f"the predictions of its {found.steps} subsets; the sum leads from the wild type to the mutant; "
        f"unit: {found.unit}{spread}",
        console,
        "dim",
    )
    console.print()


def _print_cell(found: MutantExplained, models: int, console: Console) -> None:
    digits = _digits([value for one in found.cell for value in (one.linear, one.integrated)])
    columns = [
        "through the whole cell",
        "attention",
        "in the wild type",
        "linear",
        "its change",
        "integrated",
    ]
    rows = [
        [
            f"{one.gene}{' (perturbed)' if one.perturbed else ''}",
            over_models(one.weight, 3),
            over_models(one.weight_before, 3),
            *(_number(value, digits) for value in (one.linear, one.linear_change, one.integrated)),
        ]
        for one in found.cell
    ]
    rows.append(["all others", "", "", "", "", _number(found.cell_rest, digits)])
    kept = range(6) if console.width >= WIDE else (0, 1, 3, 5)
    rows = [[row[i] for i in kept] for row in rows]
    print_table(console, [columns[i] for i in kept], rows, numeric=range(1, len(kept)))
    told = (
        "linear: gradient at the mutant times attention times value; its change from the wild type, by that "
        "gradient and integrated, agree over all genes with Spearman " + over_models(found.check)
    )
    if models > 1:
        told += f"; models agree on the integrated ones with Spearman {decimals(found.cell_agrees)}"
    print_line(told, console, "dim")


def _print_tokens(found: MutantExplained, models: int, console: Console) -> None:
    columns = ["evidence: a measured mutant", "edits", "measured", "weight"]
    rows = [
        [
            token.edit + ("" if token.same_condition else " (another condition)"),
            str(token.away),
            NONE if token.value is None else _signed(token.value, 4),
            over_models(token.weight, 3),
        ]
        for token in found.tokens
    ]
    if models > 1:
        columns.append("found in")
        for row, token in zip(rows, found.tokens, strict=True):
            row.append(f"{token.found_in} of {models}")
    print_table(console, columns, rows, numeric=range(1, len(columns)))
    if found.null_one is not None and found.null_two is not None:
        print_line(
            f"weights of mutants one edit away sum to 1 with {over_models(found.null_one)} on none of them, "
            f"those of mutants two edits away with {over_models(found.null_two)}",
            console,
            "dim",
        )


def _digits(values: Sequence[OverModels]) -> int:
    """Return the decimals at which the largest of some numbers has three digits: 2 to 6."""
    largest = max((abs(value.mean) for value in values if not math.isnan(value.mean)), default=0.0)
    # One number of decimals for all rows: parts of a prediction are compared with each other and summed.
    return min(max(2 - math.floor(math.log10(largest)), 2), 6) if largest > 0 else 4


def _number(value: OverModels, digits: int) -> str:
    if math.isnan(value.mean):
        return NONE
    return _signed(value.mean, digits) + ("" if math.isnan(value.sd) else f" ± {value.sd:.{digits}f}")


def _signed(value: float, digits: int) -> str:
    return decimals(0.0 if abs(value) < 0.5 * 10**-digits else value, digits)


def check_drawing(target: Path) -> None:
    """Refuse a file whose suffix is not that of a drawing format; raises ``ConfigError``."""
    if target.suffix not in FORMATS:
        raise ConfigError(f"cannot tell the format of {str(target)!r}: end it in {', '.join(FORMATS)}")


def draw_latents(found: Latents | None, target: Path) -> None:
    """Draw the latents of the first model in two dimensions, coloured by cluster.

    Raises
    ------
    ConfigError
        If the format is not known, or there are no latents.
    OutputError
        If the file cannot be written.
    """
    check_drawing(target)
    if found is None:
        raise ConfigError("there is nothing to draw: there are no latents, as the remarks say")
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    for cluster in found.clusters:
        at = [i for i, number in enumerate(found.cluster) if number == cluster.number]
        x, y = ([values[i] for i in at] for values in (found.x, found.y))
        axes.scatter(x, y, s=8, label=f"cluster {cluster.number} ({cluster.mutants:,})")
    first, second = found.explained
    axes.set(xlabel=f"component 1 ({first:.0%})", ylabel=f"component 2 ({second:.0%})")
    axes.legend(fontsize="small")
    drawn = io.BytesIO()  # as in `save_figure`
    with matplotlib.rc_context({"svg.hashsalt": "wildtype", "svg.fonttype": "none"}):
        metadata = {"Date": None} if target.suffix == ".svg" else None
        figure.savefig(drawn, format=target.suffix[1:], metadata=metadata, dpi=150)
    with writing(target) as path:
        path.write_bytes(drawn.getvalue())
