"""`Answers`: the responses to the local page, as JSON-like values.

A request may come from anyone. Its types and sizes are checked before the model sees it, and every error is
one sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from wildtype.errors import ConfigError, WildtypeError, shown
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.files import json_text
from wildtype.inference.predictor import Predictor
from wildtype.inference.sets import parse_set
from wildtype.mutants import Kind, MutantTable
from wildtype.report.serving.names import GeneNames
from wildtype.report.serving.nearest import Measured, nearest
from wildtype.report.serving.neighbourhood import neighbourhood, relations_of
from wildtype.tables import frame_to_csv

if TYPE_CHECKING:
    import pandas as pd

MUTANTS, GENES, LETTERS = 500, 50, 200
"""Most mutants of a request, genes of a mutant, and letters of a name."""
COMPLETIONS = 12
EXAMPLES = 3


@dataclass(frozen=True)
class PredictionRequest:
    """A checked request for predictions; see ``Predictor.predict``."""

    sets: list[list[str]]
    condition: str | None
    interval: float | None
    fitness: bool

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> PredictionRequest:
        """Read a request; raises ``ConfigError`` for one that no page makes."""
        condition, interval = request.get("condition"), request.get("interval")
        if condition is not None and not isinstance(condition, str):
            raise ConfigError(f"condition={shown(condition)} is no name: give one of the model's conditions")
        # In Python a bool is an int: true would pass for a coverage of 1.
        if interval is not None and (isinstance(interval, bool) or not isinstance(interval, int | float)):
            raise ConfigError(f"interval={shown(interval)} is no number: give a coverage, as in 0.9")
        sets = request.get("sets")
        if not isinstance(sets, list) or not sets:
            raise ConfigError("there is nothing to predict: give sets, a list of lists of genes")
        if len(sets) > MUTANTS:
            raise ConfigError(
                f"{len(sets):,} mutants are more than the {MUTANTS:,} of one request: use `wildtype predict`"
            )
        checked = [_checked(genes, row) for row, genes in enumerate(sets, start=1)]
        return cls(checked, condition, interval, request.get("fitness") is True)


def _checked(genes: Any, row: int) -> list[str]:
    if not isinstance(genes, list) or not all(isinstance(gene, str) for gene in genes):
        raise ConfigError(f"row {row} is no list of genes: give names, as in SGS1 or CDC28:reduced")
    if len(genes) > GENES:
        raise ConfigError(f"row {row} names {len(genes):,} genes; a mutant of this page has up to {GENES}")
    for gene in genes:
        if len(gene) > LETTERS:
            raise ConfigError(f"row {row} names {shown(gene)}, {len(gene):,} letters: that is no gene")
    return list(genes)


class Answers:
    """Answers the requests of the page with one predictor, one request at a time.

    Parameters
    ----------
    predictor : Predictor
        Of any model.
    name : str
        Its name on the page.

    Raises
    ------
    WildtypeError
        From every method, in one sentence, for a request that cannot be answered.
    """

    def __init__(self, predictor: Predictor, name: str) -> None:
        self.predictor, self.name = predictor, name
        self._names = GeneNames(predictor.genes)
        # The server has a thread per connection; the predictor's caches are not made for concurrent use, and
        # a second forward pass would only share the same cores.
        self._lock = threading.Lock()

    @cached_property
    def _shown(self) -> list[dict[str, Any]]:
        """Outputs that are one number per mutant."""
        return [p for p in self.predictor.checkpoint.phenotypes if p.get("form") != "gene"]

    def wake(self) -> None:
        """Encode the wild type and build the look-up tables, so that the first request is fast."""
        interval = None if self.predictor.checkpoint.validation is None else 0.9
        with self._lock:
            self.predictor.predict([[self.predictor.genes.names[0]]], interval=interval)
        self.model()

    def model(self) -> dict[str, Any]:
        """Return what the page shows at the start: the model, its phenotypes and choices."""
        with self._lock:
            return self._model

    @cached_property
    def _model(self) -> dict[str, Any]:
        checkpoint = self.predictor.checkpoint
        kinds = np.union1d(checkpoint.known.table.kind, self.predictor.kinds)
        test = checkpoint.metrics.get("test") or {}
        phenotypes = [
            {
                "name": p["name"],
                "unit": p.get("unit", ""),
                "form": p.get("form", "scalar"),
                "pearson": _pearson(test.get(p["name"])),
            }
            for p in self._shown
        ]
        return {
            "name": self.name,
            "model": checkpoint.model.config.name,
            "organism": self.predictor.genes.organism,
            "genes": len(self.predictor.genes),
            "dataset": checkpoint.origin.get("dataset"),
            "split": checkpoint.origin.get("split"),
            "phenotypes": phenotypes,
            "per_gene": [p["name"] for p in checkpoint.phenotypes if p.get("form") == "gene"],
            "known": _spread(checkpoint.known),
            "conditions": checkpoint.conditions,
            "kinds": [Kind(kind).name.lower() for kind in kinds.tolist()],
            "intervals": checkpoint.validation is not None,
            "fitness": bool({"epsilon", "tau"} & set(checkpoint.names)),
            "relations": list(self._relations),
            "remarks": list(self.predictor.remarks),
            "examples": self._examples(),
            "most": {"mutants": MUTANTS, "genes": GENES},
        }

    def _examples(self) -> list[dict[str, str]]:
        """Return sets to begin with, written and as people read them: measured mutants of the first output,
        the most extreme.
        """
        known = self.predictor.checkpoint.known
        first = self._shown[0]["name"] if self._shown else self.predictor.checkpoint.names[0]
        rows = np.flatnonzero(known.table.phenotype == known.phenotypes.index(first))
        value = known.table.value[rows]
        far = np.abs(np.nan_to_num(value - (np.nanmean(value) if np.isfinite(value).any() else 0.0)))
        # Several rows may hold the same genes, so more rows are taken than examples are shown.
        table = known.table.take(rows[np.argsort(-far, kind="stable")[: 4 * EXAMPLES]])
        names, kinds = self.predictor.genes.names, self.predictor.kinds
        found: dict[str, str] = {}
        for a, b in zip(table.offsets[:-1].tolist(), table.offsets[1:].tolist(), strict=True):
            done = [(g, "" if k == kinds[g] else f":{Kind(k).name.lower()}") for g, k in _pairs(table, a, b)]
            line = ",".join(f"{names[g]}{kind}" for g, kind in done)
            found.setdefault(line, " ".join(f"{self._gene(g)['label']}{kind}" for g, kind in done))
        return [{"line": line, "shown": text} for line, text in found.items() if line][:EXAMPLES]

    def complete(self, text: str) -> dict[str, Any]:
        """Return the genes that typed letters may mean, the likeliest first."""
        found = self._names.complete(text[:LETTERS], COMPLETIONS)
        return {"genes": [{**self._gene(match.gene), "matched": match.name} for match in found]}

    def read(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return written sets (``lines``), as in ``SGS1, SRS2:reduced``, as genes and kinds.

        A line that cannot be read has its reason instead; blank lines are left out.
        """
        lines = request.get("lines")
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise ConfigError("there is nothing to read: give lines, a list of texts")
        if len(lines) > MUTANTS:
            raise ConfigError(
                f"{len(lines):,} lines are more than the {MUTANTS:,} of one request: use `wildtype predict`"
            )
        with self._lock:
            return {"sets": [self._read(line) for line in lines if line.strip()]}

    def _read(self, line: str) -> dict[str, Any]:
        try:
            table = self.predictor.table([_checked(parse_set(line), 1)])
            if table.dose is not None and np.isfinite(table.dose).any():
                raise ConfigError("row 1 has a dose, which this page does not show: use `wildtype predict`")
        except WildtypeError as error:
            # The message counts rows of a table, which a page with one line does not have.
            return {"line": shown(line), "error": str(error).removeprefix("row 1: ").replace("row 1 ", "it ")}
        return {"genes": self._members(table)}

    def predict(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return predictions of ``sets``, lists of written genes; ``interval`` is their coverage."""
        checked = PredictionRequest.of(request)
        with self._lock:
            frame = self._frame(checked)
            table = self.predictor.table(checked.sets)
        rows = frame.to_dict("records")
        names = [p["name"] for p in self._shown]
        mutants = [
            {
                "genes": self._members(table.take([at])),
                "predictions": [
                    {
                        "value": row[name],
                        **{part: row.get(f"{name}_{part}") for part in ("low", "high", "sd", "measured")},
                    }
                    for name in names
                ],
                "fitness": row.get("fitness_expected"),
                "fitness_sd": row.get("fitness_expected_sd"),
                "order_seen": bool(row["order_seen"]),
                "genes_seen": int(row["genes_seen"]),
                "note": row["note"],
            }
            for at, row in enumerate(rows)
        ]
        return {"mutants": mutants}

    def as_csv(self, request: Mapping[str, Any]) -> str:
        """Return the table of ``Predictor.predict`` as CSV; no cell starts a formula in a spreadsheet."""
        checked = PredictionRequest.of(request)
        with self._lock:
            frame = self._frame(checked)
        return frame_to_csv(frame)

    def as_json(self, request: Mapping[str, Any]) -> str:
        """Return the table of ``Predictor.predict`` as JSON, an object per mutant."""
        checked = PredictionRequest.of(request)
        with self._lock:
            frame = self._frame(checked)
        return json_text(frame.to_dict("records"))

    def _frame(self, request: PredictionRequest) -> pd.DataFrame:
        return self.predictor.predict(
            request.sets,
            as_="fitness" if request.fitness else "phenotype",
            condition=request.condition,
            interval=request.interval,
        )

    def nearest(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the measured mutants nearest to the first of ``sets``."""
        checked = PredictionRequest.of(request)
        with self._lock:
            checkpoint = self.predictor.checkpoint
            table = self.predictor.table(checked.sets[:1], condition=checked.condition)
            found = nearest(checkpoint, table)
            index = checkpoint.evidence
            return {
                "mutants": [self._measured(one) for one in found],
                "reads_evidence": index is not None and len(index.table) > 0,
            }

    def _measured(self, one: Measured) -> dict[str, Any]:
        kinds = zip(one.edit.genes, one.kinds, strict=True)
        return {
            "how": one.edit.how,
            "genes": [{**self._gene(gene), "kind": kind} for gene, kind in kinds],
            "old": [self._gene(gene) for gene in one.edit.old],
            "new": [self._gene(gene) for gene in one.edit.new],
            "condition": self.predictor.checkpoint.conditions[one.condition],
            "likeness": one.likeness,
            "values": {name: asdict(value) for name, value in one.values.items()},
        }

    def neighbourhood(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the genes of the first of ``sets``, their strongest neighbours and the edges between."""
        checked = PredictionRequest.of(request)
        with self._lock:
            table = self.predictor.table(checked.sets[:1])
            found = neighbourhood(self._relations, table.gene.tolist())
        return {
            "genes": [self._gene(gene) for gene in found.genes],
            "perturbed": found.perturbed,
            "edges": [asdict(edge) for edge in found.edges],
            "left_out": found.left_out,
        }

    @cached_property
    def _relations(self) -> dict[str, Any]:
        return relations_of(self.predictor.checkpoint.organism)

    def _gene(self, gene: int) -> dict[str, Any]:
        genes = self.predictor.genes
        name = genes.names[gene]
        return {
            "name": name,
            "label": genes.standard.get(name, name),
            "description": genes.descriptions.get(name, ""),
            "essential": bool(self.predictor.checkpoint.known.essential[gene]),
            "kind": Kind(self.predictor.kinds[gene]).name.lower(),
        }

    def _members(self, table: MutantTable) -> list[dict[str, Any]]:
        """Return the genes of the only row of a table, with what was done to them."""
        return [
            {**self._gene(g), "usual": self._gene(g)["kind"], "kind": Kind(k).name.lower()}
            for g, k in _pairs(table, 0, len(table.gene))
        ]


def _pairs(table: MutantTable, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield genes and kinds of a part of a table's perturbations."""
    return zip(table.gene[start:stop].tolist(), table.kind[start:stop].tolist(), strict=True)


def _spread(known: ReferenceMeasurements) -> list[dict[str, Any]]:
    """Return the known phenotypes and the sd of the measurements of each; None where it is undefined."""
    there = np.isfinite(known.table.value)
    of, value = known.table.phenotype[there], known.table.value[there].astype(np.float64)
    size = len(known.phenotypes)
    count = np.maximum(np.bincount(of, minlength=size), 1)
    mean = np.bincount(of, value, size) / count
    # Two passes: a mean of squares minus a squared mean would lose all digits where the mean is large.
    sd = np.sqrt(np.bincount(of, (value - mean[of]) ** 2, size) / count)
    return [{"name": name, "sd": float(x) or None} for name, x in zip(known.phenotypes, sd, strict=True)]


def _pearson(score: Any) -> float | None:
    """Return the correlation on test rows from a record of metrics; None where it has none."""
    try:
        return float(score["pearson"]["value"])
    except (KeyError, TypeError, ValueError):
        return None
