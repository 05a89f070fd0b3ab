"""Contents of data as tables: cards, relations and features of organisms, rows of sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from wildtype.report.text_table import NONE, markdown_table, print_line, print_table
from wildtype.terminal import PlainConsole

if TYPE_CHECKING:
    from wildtype.organism import Organism


NAMED = 4
"""Most phenotypes that a line about a dataset names."""
LISTED = 20
"""Most conditions that a card lists."""


def print_card(card: Mapping[str, Any], console: Console | None = None) -> None:
    """Print what ``Dataset.card`` returns: counts, exclusions, policies, noise, notes, and every stage."""
    console = console or PlainConsole()
    print_line(card["name"], console, "bold")
    description = f": {card['organism_description']}" if card["organism_description"] else ""
    lines: list[tuple[str, object]] = [
        ("organism", f"{card['organism']}{description}"),
        ("genes", f"{card['genes']:,}, of which perturbed in some row: {card['genes_measured']:,}"),
        ("rows", f"{card['rows']:,}"),
        *(("conditions", _conditions(names)) for names in (card.get("conditions"),) if names),
        ("targets", ", ".join(card["targets"]) or NONE),
        ("perturbations", _counts(card["perturbations_by_kind"])),
        ("not in the table", _counts(card["excluded"])),
        *((f"policy: {name}", meaning) for name, meaning in card["policies"].items()),
        *(
            (
                "provenance group",
                f"{name} ({', '.join(studies)}): their numbers of one mutant are one measurement",
            )
            for name, studies in card.get("provenance", {}).items()
        ),
        ("noise ceiling", card["noise"]),
        *(("note", note) for note in card["notes"]),
        ("citation", card["citation"] or NONE),
        ("sha256", card["sha256"]),
    ]
    print_table(console, ["", ""], lines)
    by_phenotype = card["rows_by_phenotype_and_order"]
    orders = sorted({int(order) for counts in by_phenotype.values() for order in counts})
    columns = ["rows by genes per mutant", *(str(order) for order in orders)]
    rows = [
        [name, *(f"{counts.get(str(order), 0):,}" for order in orders)]
        for name, counts in by_phenotype.items()
    ]
    print_table(console, columns, rows, numeric=range(1, len(columns)))
    if card["stages"]:
        _print_stages(card["stages"], console)


def _conditions(names: Sequence[str]) -> str:
    """Return the conditions of a dataset, of which the first is the reference, in one line."""
    listed, more = names[1:LISTED], len(names[LISTED:])
    return f"{names[0]} (the reference), {', '.join(listed)}{f' and {more:,} more' if more else ''}"


def card_line(card: Mapping[str, Any]) -> str:
    """Return what a dataset is in one line: rows by phenotype, measured genes, rows not in the table."""
    rows = {
        name: sum(orders.values())
        for name, orders in card["rows_by_phenotype_and_order"].items()
        if sum(orders.values())
    }
    by_phenotype = (
        "; ".join(f"{count:,} {name}" for name, count in rows.items())
        if len(rows) <= NAMED
        else f"{card['rows']:,} rows of {len(rows)} phenotypes"
    )
    dropped = sum(card["excluded"].values())
    return (
        f"{card['name']}: {by_phenotype or 'no rows'}; {card['genes_measured']:,} genes"
        f"{f'; {dropped:,} rows not used' if dropped else ''}"
    )


def organism_line(organism: Organism) -> str:
    """Return what an organism is in one line: genes, graphs, feature blocks, reactions."""
    parts = [
        f"{len(organism.genes):,} genes",
        f"{len(organism.graphs)} gene graphs",
        f"{len(organism.features)} feature blocks",
    ]
    if organism.metabolism is not None:
        parts.append(f"{len(organism.metabolism.reactions):,} reactions")
    return f"{organism.name}: {', '.join(parts)}"


def _print_stages(stages: Iterable[Mapping[str, Any]], console: Console) -> None:
    rows, before = [], ""
    for report in stages:
        rows.append(
            [
                report["stage"] if report["stage"] != before else "",
                report["step"],
                report["policy"],
                f"{report['rows_in']:,}",
                f"{report['rows_out']:,}",
                _counts(report["counts"]),
            ]
        )
        before = report["stage"]
    console.print()
    print_table(console, ["stage", "step", "policy", "rows in", "rows out", "counts"], rows, numeric=(3, 4))


def _counts(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {count:,}" for name, count in counts.items()) or NONE


def print_relations(organism: Organism, console: Console | None = None) -> None:
    """Print the gene graphs of an organism: sizes, direction, what was dropped and why, where from."""
    console = console or PlainConsole()
    if not organism.graphs:
        print_line(f"{organism.name} ({len(organism.genes):,} genes) has no gene graphs", console)
        return
    rows = [
        [
            relation.name,
            f"{relation.nodes:,}",
            f"{relation.edges:,}",
            f"{relation.regularised_rows:,}",
            f"{'directed' if relation.directed else 'undirected'}{', weighted' if relation.weighted else ''}",
            _counts(relation.dropped),
            " ".join(part for part in (relation.source, relation.version) if part) or NONE,
        ]
        for relation in organism.graphs.values()
    ]
    print_table(
        console,
        ["relation", "nodes", "edges", "rows", "kind", "dropped", "source"],
        rows,
        numeric=(1, 2, 3),
        title=f"Gene graphs of {organism.name} ({len(organism.genes):,} genes)",
        widest=min(max(len(name) for name in organism.graphs), 32),
    )
    console.print()
    notes: dict[str, list[str]] = {}
    for relation in organism.graphs.values():
        if relation.note:
            notes.setdefault(relation.note, []).append(relation.name)
    for note, names in notes.items():
        print_line(f"{', '.join(names)}: {note}", console)
    legend = (
        "rows: genes with an outgoing edge, on which an attention prior acts; undirected edges count once"
    )
    print_line(legend, console, "dim")


def print_features(organism: Organism, cards: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the cards of an organism's feature blocks: sizes, origin, and below what to know of each."""
    rows = [
        [
            card["block"],
            f"{card['columns']:,}",
            f"{card['genes']:,}",
            "same" if card["comparable"] else "own axes",
            card["source"] or NONE,
        ]
        for card in cards
    ]
    title = f"Gene features of {organism.name} ({len(organism.genes):,} genes)"
    columns = ["block", "columns", "genes", "between organisms", "source"]
    print_table(console, columns, rows, numeric=(1, 2), title=title)
    console.print()
    for card in cards:
        facts = [f"REFUSED for {', '.join(card['refused'])}"] if card["refused"] else []
        facts += [f"measured from {', '.join(card['measured'])}"] if card["measured"] else []
        facts += [card["note"]] if card["note"] else []
        if facts:
            print_line(f"{card['block']}: {'; '.join(facts)}", console)
    legend = (
        "genes: those with any value, the others are missing and marked so; own axes: components of a "
        "decomposition, which mean nothing in another organism"
    )
    print_line(legend, console, "dim")


# ------------------------------------------------------------------------------------ rows of every source

SOURCE_COLUMNS = ("publisher", "file", "becomes", "rows", "kept", "dropped, by reason", "published")
SourceRow = Mapping[str, Any]


def sources_markdown(rows: Sequence[SourceRow]) -> str:
    """Return one Markdown table per group, and the files that are not there; rows as ``Surveyed.to_json``."""
    parts = []
    for group, cells in _groups(rows):
        # Markdown sets the counts, columns 4 and 5, to the right.
        table = markdown_table(SOURCE_COLUMNS, cells).split("\n", 2)
        table[1] = "| --- | --- | --- | ---: | ---: | --- | --- |"
        parts.append("\n".join([f"### {group[0].upper()}{group[1:]}", "", *table]))
    absent = _absent(rows)
    if absent:
        parts.append("Not in the folder, and so not read: " + ", ".join(f"`{name}`" for name in absent) + ".")
    return "\n\n".join(parts) + "\n"


def print_sources(rows: Sequence[SourceRow], console: Console) -> None:
    """Print the same for people."""
    for group, cells in _groups(rows):
        shown = [[text.strip("`") for text in row[:-1]] for row in cells]
        print_table(console, SOURCE_COLUMNS[:-1], shown, numeric=(3, 4), title=group)
    absent = _absent(rows)
    if absent:
        print_line("not in the folder: " + ", ".join(absent), console)


def _groups(rows: Sequence[SourceRow]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    for group in dict.fromkeys(row["group"] for row in rows):
        told: set[str] = set()
        cells: list[tuple[str, ...]] = []
        for row in rows:
            if row["group"] != group or row["left_out"]:
                continue
            whose = ", ".join(row["publishers"])
            published = "" if whose in told else _source_counts(row["published"])
            told.add(whose)
            renamed = f"; {row['renamed']:,} of the kept by an older name" if row["renamed"] else ""
            cells.append(
                (
                    whose,
                    f"`{row['file']}`",
                    row["becomes"],
                    f"{row['rows']:,}",
                    f"{row['kept']:,}",
                    (_source_counts(row["dropped"]) or "–") + renamed,
                    published or "–",
                )
            )
        if cells:
            yield group, cells


def _source_counts(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} {what}" for what, count in counts.items())


def _absent(rows: Sequence[SourceRow]) -> list[str]:
    return list(dict.fromkeys(row["reader"] for row in rows if row["left_out"]))
