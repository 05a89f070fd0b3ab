"""Pinned splits: the sides of a split by genotype, so that any other build of the dataset can take them.

A stored `Split` holds row numbers, which are valid for one build only. A pinned file names the content of
each row instead: phenotype, condition, and the mutant as systematic gene names with their kinds, such as
``YAL001C YBR002W:reduced``. A gene without a kind is absent; a dose follows the kind (``YAL001C:added:2.5``);
blanks, colons and per cent signs within a name are per-cent encoded.

    {"what": "wildtype pinned split", "format_version": 1, "dataset": …, "split": …, "seed": …, …,
     "sides": {"train": {phenotype: {condition: [mutant, …]}}, "validation": …, "test": …, "dropped": …},
     "sha256": over everything else}

The same as Parquet, for large datasets: columns side, phenotype, condition, mutant; the rest in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import DatasetRecord
from wildtype.datasets.draws import DROPPED, PARTS, count_genes
from wildtype.datasets.leakage import leakage_report
from wildtype.datasets.plans import canonical_name
from wildtype.datasets.splits import Split, rows_sha256
from wildtype.errors import GeneSetError, SplitError, reason_of
from wildtype.files import content_hash, finite, write_json, writing
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.identity import mutant_id
from wildtype.mutants.ragged import joint

Ints = NDArray[np.int64]
Sides = dict[str, dict[str, dict[str, list[str]]]]
"""Side, phenotype, condition, mutants."""

WHAT = "wildtype pinned split"
FORMAT = 1
SIDES = (*PARTS, "dropped")
NOT_LISTED = "not in the pinned split"
NO_SIDE = "on no side of the pinned split"
UNTAUGHT = "another gene has no training row"
_KINDS = {kind.name.lower(): int(kind) for kind in Kind}


@dataclass(frozen=True)
class Reused:
    """A pinned split on another build of its dataset.

    Attributes
    ----------
    split : Split
        Rows of this build; those that the file does not list are on no side.
    unknown : int
        Rows of this build that the file does not list.
    missing : dict of str to int
        Genotypes that the file lists and this build lacks, by side (``train`` … ``dropped``).
    """

    split: Split
    unknown: int
    missing: Mapping[str, int]

    def __str__(self) -> str:
        lacking = ", ".join(f"{count:,} of {side}" for side, count in self.missing.items() if count)
        return (
            f"{self.split.total - self.unknown:,} of {self.split.total:,} rows are in the pinned split, "
            f"{self.unknown:,} are not and were left out; pinned but not in this build: {lacking or 'none'}"
        )


def write_pinned(split: Split, dataset: DatasetRecord, path: str | Path) -> None:
    """Write a split by genotype, completely or not at all, with its leakage report.

    Parameters
    ----------
    split, dataset
        The split is checked against the dataset first.
    path : path
        Ends in ``.json``, or ``.parquet`` for large datasets.

    Raises
    ------
    SplitError
        If the split leaks, belongs to another dataset, puts one genotype on two sides, or the name ends
        otherwise.
    OutputError
        If it cannot be written.
    """
    path = Path(path)
    _suffix(path)
    split.check(dataset)
    record = {
        "what": WHAT, "format_version": FORMAT, "dataset": dataset.name, "dataset_sha256": dataset.sha256,
        "organism": dataset.organism.name, "split": split.name, "seed": split.seed,
        "options": split.options, "dropped": split.dropped,
        "held_out_genes": split.held_out_genes, "held_out_pairs": split.held_out_pairs,
        "held_out_screens": split.held_out_screens, "strains": split.strains,
        "leakage": leakage_report(split, dataset).to_json(),
    }  # fmt: skip
    record = json.loads(json.dumps(finite(record)))
    sides = _list_sides(split, dataset)
    record["sha256"] = content_hash(record, sides)
    if path.suffix == ".json":
        write_json(path, {**record, "sides": sides})
    else:
        _write_parquet(record, sides, path)


def read_pinned(path: str | Path, dataset: DatasetRecord) -> Reused:
    """Put the rows of a dataset on the sides that a pinned file gives them, by genotype.

    The order of rows and of genes may differ, and rows may be more or fewer: see `Reused`. Where other genes
    of a one-unseen row have lost their last training row, the row is dropped and counted.

    Raises
    ------
    SplitError
        If the file is missing, damaged, no pinned split, or of another dataset; if a side stays empty; or if
        the sides leak in this build.
    """
    path = Path(path)
    record, sides = _read(path)
    try:
        if (record["dataset"], record["organism"]) != (dataset.name, dataset.organism.name):
            raise SplitError(
                f"{path} pins a split of dataset {record['dataset']!r} ({record['organism']}), not of "
                f"{dataset.name!r} ({dataset.organism.name}): choose the file that belongs to it"
            )
        side, missing = _match(sides, dataset)
        return _reuse(record, side, missing, path, dataset)
    except (KeyError, ValueError, TypeError, AttributeError, GeneSetError) as error:
        if isinstance(error, SplitError):
            raise
        raise _damaged(path, error) from error


def _suffix(path: Path) -> str:
    if path.suffix not in (".json", ".parquet"):
        raise SplitError(f"a pinned split is a .json or .parquet file, not {path.name!r}: rename it")
    return path.suffix


def _damaged(path: Path, error: Exception) -> SplitError:
    return SplitError(
        f"{path} is not a complete pinned split ({reason_of(error)}): restore it, or pin the split again"
    )


def _list_sides(split: Split, dataset: DatasetRecord) -> Sides:
    table, names = dataset.table, dataset.organism.genes.names
    side = np.full(split.total, DROPPED, np.int64)
    for s, part in enumerate(PARTS):
        side[getattr(split, part)] = s
    mutant = mutant_id(table)
    example = np.unique(mutant, return_index=True)[1]
    spelled = list(_spell(table.take(example), names))
    phenotypes = [phenotype.name for phenotype in dataset.phenotypes]
    phenotype, condition = (
        _positions(phenotypes)[table.phenotype],
        _positions(dataset.conditions)[table.condition],
    )
    code = joint([(mutant, len(spelled)), (phenotype, len(phenotypes)), (condition, len(dataset.conditions))])
    first, of_row = np.unique(code, return_index=True, return_inverse=True)[1:]
    # A genotype is the key of a pinned row, so rows of one genotype must not differ in their side.
    torn = np.flatnonzero(side != side[first][of_row.reshape(-1)])
    if torn.size:
        raise SplitError(
            f"mutant {spelled[mutant[torn[0]]]} of dataset {dataset.name!r} is in several rows on two "
            "sides of the split: a split by row cannot be pinned by genotype"
        )
    out: Sides = {name: {} for name in SIDES}
    listed = zip(side[first], phenotype[first], condition[first], mutant[first], strict=True)
    for s, p, c, m in listed:
        of_side = out[SIDES[s]].setdefault(phenotypes[p], {})
        of_side.setdefault(dataset.conditions[c], []).append(spelled[m])
    return {
        name: {
            p: {c: sorted(of_phenotype[c]) for c in sorted(of_phenotype)}
            for p, of_phenotype in sorted(of_side.items())
        }
        for name, of_side in out.items()
    }


def _positions(names: Sequence[str]) -> Ints:
    """Return the first position of each name, since the file knows conditions and phenotypes by name only."""
    return np.array([names.index(name) for name in names], dtype=np.int64)


def _spell(table: MutantTable, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the text of every mutant, genes in the order of their names."""
    kinds = {number: name for name, number in _KINDS.items()}
    encoded = {int(g): quote(names[g], safe="()/_,.+'*~@") for g in np.unique(table.gene)}
    dose = np.full(len(table.gene), np.nan) if table.dose is None else table.dose
    texts = []
    for g, k, d in zip(table.gene.tolist(), table.kind.tolist(), dose.tolist(), strict=True):
        dosed = f":{d!r}" if d == d else ""
        texts.append(encoded[g] + (f":{kinds[k]}" if k or dosed else "") + dosed)
    for a, b in zip(table.offsets[:-1].tolist(), table.offsets[1:].tolist(), strict=True):
        yield " ".join(sorted(texts[a:b]))


def _parse(text: str) -> list[tuple[str, int, float]]:
    """Return name, kind and dose of every gene of one mutant; raises ``ValueError`` or ``KeyError``."""
    out = []
    for word in text.split(" ") if text else []:
        name, *rest = word.split(":")
        if not name or len(rest) > 2:
            raise ValueError(f"{word!r} is not a gene")
        out.append((unquote(name), _KINDS[rest[0]] if rest else 0, float(rest[1]) if rest[1:] else np.nan))
    return out


def _match(sides: Sides, dataset: DatasetRecord) -> tuple[Ints, dict[str, int]]:
    """Return the side [M] of every row (-1: not listed), and the listed genotypes without a row, by side."""
    known = {name: position for position, name in enumerate(dataset.organism.genes.names)}
    of_condition = _positions(dataset.conditions)
    of_phenotype = _positions([phenotype.name for phenotype in dataset.phenotypes])
    conditions = dict(zip(dataset.conditions, of_condition.tolist(), strict=True))
    phenotypes = {p.name: at for p, at in zip(dataset.phenotypes, of_phenotype.tolist(), strict=True)}
    missing = dict.fromkeys(SIDES, 0)
    number: dict[str, int] = {}  # mutants of known genes
    genes: list[list[tuple[str, int, float]]] = []
    strange: set[str] = set()
    entries: list[tuple[int, int, int, int]] = []
    for s, name in enumerate(SIDES):
        for phenotype, by_condition in sides[name].items():
            for condition, mutants in by_condition.items():
                p, c = phenotypes.get(phenotype, -1), conditions.get(condition, -1)
                for text in mutants:
                    if text not in number and text not in strange:
                        parsed = _parse(text)
                        if all(gene in known for gene, _, _ in parsed):
                            number[text] = len(genes)
                            genes.append(parsed)
                        else:
                            strange.add(text)
                    if p < 0 or c < 0 or text in strange:
                        missing[name] += 1
                    else:
                        entries.append((number[text], c, p, s))
    flat = [gene for parsed in genes for gene in parsed]
    listed = MutantTable.build(
        np.array([known[gene] for gene, _, _ in flat], dtype=np.int64),
        np.cumsum([0] + [len(parsed) for parsed in genes]),
        kind=np.array([kind for _, kind, _ in flat], dtype=np.uint8),
        dose=np.array([dose for _, _, dose in flat], dtype=np.float32),
    )
    at = np.array(entries, dtype=np.int64).reshape(-1, 4)
    # Numbered together, so that equal mutants of file and dataset get equal numbers.
    both = MutantTable.concatenate([listed, dataset.table])
    mutant = mutant_id(both)
    code = joint(
        [
            (np.append(mutant[: len(genes)][at[:, 0]], mutant[len(genes) :]), int(mutant.max(initial=0)) + 1),
            (np.append(at[:, 1], of_condition[dataset.table.condition]), len(of_condition)),
            (np.append(at[:, 2], of_phenotype[dataset.table.phenotype]), len(of_phenotype)),
        ]
    )
    distinct, code = np.unique(code, return_inverse=True)
    of_entry, of_row = code.reshape(-1)[: len(at)], code.reshape(-1)[len(at) :]
    if np.unique(of_entry).size < len(at):
        raise ValueError("it lists a genotype twice")
    side = np.full(distinct.size, -1, np.int64)
    side[of_entry] = at[:, 3]
    here = np.zeros(distinct.size, bool)
    here[of_row] = True
    for s, name in enumerate(SIDES):
        missing[name] += int((~here[of_entry] & (at[:, 3] == s)).sum())
    return side[of_row], missing


def _reuse(
    record: Mapping[str, Any], side: Ints, missing: dict[str, int], path: Path, dataset: DatasetRecord
) -> Reused:
    name = canonical_name(record["split"])
    dropped = {NO_SIDE: int((side == DROPPED).sum()), NOT_LISTED: int((side < 0).sum())}
    known = set(dataset.organism.genes.names)
    if name == "one-unseen":
        seen = np.zeros(len(known), bool)
        seen[dataset.table.take(side == 0).gene] = True
        # Exactly one gene may be unseen: this build may lack the training rows of the others.
        untaught = ((side == 1) | (side == 2)) & (count_genes(dataset.table, ~seen) > 1)
        dropped[UNTAUGHT] = int(untaught.sum())
        side = np.where(untaught, DROPPED, side)
    rows = {part: np.flatnonzero(side == s) for s, part in enumerate(PARTS)}
    for part, at in rows.items():
        if not at.size:
            raise SplitError(
                f"{path} lists no {part} row that dataset {dataset.name!r} has: it was pinned on other "
                "phenotypes or conditions; choose another file or split anew"
            )
    split = Split(
        name=name,
        seed=int(record["seed"]),
        dataset_sha256=dataset.sha256,
        rows_sha256=rows_sha256(dataset),
        total=len(dataset),
        **rows,
        dropped={reason: count for reason, count in dropped.items() if count},
        held_out_genes={
            part: tuple(gene for gene in genes if gene in known)
            for part, genes in record["held_out_genes"].items()
        },
        held_out_pairs={
            part: tuple((str(a), str(b)) for a, b in pairs if {a, b} <= known)
            for part, pairs in record["held_out_pairs"].items()
        },
        held_out_screens={part: tuple(names) for part, names in record["held_out_screens"].items()},
        strains=tuple(tuple(strain) for strain in record["strains"]),
        options={**record["options"], "pinned": record["sha256"]},
    )
    split.check(dataset)
    return Reused(split, int((side < 0).sum()), missing)


def _write_parquet(record: Mapping[str, Any], sides: Sides, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = [
        (side, phenotype, condition, mutants)
        for side, of_side in sides.items()
        for phenotype, of_phenotype in of_side.items()
        for condition, mutants in of_phenotype.items()
    ]
    counts = [len(mutants) for *_, mutants in lists]
    columns = {
        name: pa.array(np.repeat(np.array([one[i] for one in lists], dtype=object), counts), pa.string())
        for i, name in enumerate(("side", "phenotype", "condition"))
    }
    columns["mutant"] = pa.array([text for *_, mutants in lists for text in mutants], pa.string())
    table = pa.table(columns).replace_schema_metadata({WHAT: json.dumps(record)})
    with writing(path) as temporary:
        pq.write_table(table, temporary)


def _read(path: Path) -> tuple[dict[str, Any], Sides]:
    """Return the record and the sides of a pinned file; raises ``SplitError``."""
    try:
        if _suffix(path) == ".parquet":
            record, sides = _read_parquet(path)
        else:
            record = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(record, dict) or record.get("what") != WHAT:
                raise ValueError("it is another kind of file")
            sides = record.pop("sides")
        if record["format_version"] != FORMAT:
            raise SplitError(
                f"{path} has format {record['format_version']}, expected {FORMAT}: pin the split again"
            )
        stated = record.pop("sha256")
        if content_hash(record, sides) != stated:
            raise ValueError("its content does not match its recorded sha256")
    except FileNotFoundError:
        raise SplitError(f"there is no pinned split at {path}: check the path") from None
    except OSError as error:
        raise SplitError(f"{path} cannot be read ({error.strerror or error}): make it readable") from error
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, SplitError):
            raise
        raise _damaged(path, error) from error
    return {**record, "sha256": stated}, sides


def _read_parquet(path: Path) -> tuple[dict[str, Any], Sides]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as handle:
            table = pq.read_table(handle)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(reason_of(error)) from error
    stored = (table.schema.metadata or {}).get(WHAT.encode())
    if stored is None:
        raise ValueError("it is another kind of file")
    sides: Sides = {name: {} for name in SIDES}
    columns = [table.column(name).to_pylist() for name in ("side", "phenotype", "condition", "mutant")]
    for side, phenotype, condition, mutant in zip(*columns, strict=True):
        sides[side].setdefault(phenotype, {}).setdefault(condition, []).append(mutant)
    return json.loads(stored), sides
