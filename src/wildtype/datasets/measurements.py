"""Measurements in columns: the same facts as `records`, for millions of rows at once.

Every reader of a publisher's file returns one `Measurements`, the store takes and gives them, and the stages
on the way to a dataset work on them.

Legend: M measurements · k perturbations of one mutant · Σk perturbations of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.characters import name_fault
from wildtype.datasets.records import (
    Environment,
    Genotype,
    Measurement,
    Perturbation,
    PerturbationKind,
    PhenotypeDefinition,
    Study,
)
from wildtype.errors import DatasetError
from wildtype.mutants.ragged import (
    BLOCK,
    Ragged,
    compact,
    first_of_each,
    is_repeated,
    joined_columns,
    joint,
    ranks,
    repeated,
    rows_by_order,
)

Ints = NDArray[np.int64]
Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]


class Coded(NamedTuple):
    """Texts by their codes: the distinct ones, ascending, and the position of every text among them."""

    names: tuple[str, ...]
    code: Codes


Texts = Sequence[str] | NDArray[Any] | Coded
NAMES = {
    "study": "studies", "gene": "genes", "allele": "alleles", "environment": "environments",
    "phenotype": "phenotypes", "trait": "traits", "replicate": "replicates", "reference": "references",
}  # fmt: skip
"""Column of codes: the list that its codes refer to."""


def bits(numbers: Floats) -> Ints:
    """Return the integers [M] that spell floats: every NaN alike, 0 and -0 apart, as records have it."""
    if is_repeated(numbers):
        return repeated(bits(numbers[:1]), len(numbers))
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)


def coded(texts: Sequence[str] | NDArray[Any]) -> Coded:
    """Return the distinct texts, ascending, and the position [M] of every text among them."""
    given = np.asarray(texts, dtype=object).reshape(-1).tolist()
    spelled = {text: str(text) for text in set(given)}
    distinct = sorted(set(spelled.values()))
    position = {text: code for code, text in enumerate(distinct)}
    code_of = {text: position[spelling] for text, spelling in spelled.items()}
    return Coded(tuple(distinct), np.fromiter(map(code_of.__getitem__, given), np.int64, len(given)))


def coded_by(parts: Sequence[tuple[NDArray[Any], Ints]]) -> Coded:
    """Return the texts of rows whose texts are those of their strains, without a Python object per row.

    Parameters
    ----------
    parts : sequence of (str [d, k], int [M])
        Texts of d strains, and the strain of every row; columns of several parts stand side by side.
    """
    used = [
        (texts[rows], rank)
        for texts, (rows, rank) in ((t, np.unique(c, return_inverse=True)) for t, c in parts)
    ]
    names, code = coded(np.concatenate([texts.reshape(-1) for texts, _ in used]))
    out, start = [], 0
    for texts, rank in used:
        out.append(code[start : start + texts.size].reshape(len(texts), -1)[rank.reshape(-1)])
        start += texts.size
    return Coded(names, np.concatenate(out, axis=1).reshape(-1))


def parts_of(measured: Measurements | Iterable[Measurements]) -> list[Measurements]:
    """Return measurements that a reader gives at once, or part by part, as a list of parts."""
    return [measured] if isinstance(measured, Measurements) else list(measured)


def recoded(table: NDArray[Any], codes: Codes) -> NDArray[Any]:
    """Return the entry of a table for every code."""
    return repeated(table[codes[:1]], len(codes)) if is_repeated(codes) else table[codes]


@dataclass(frozen=True, eq=False)
class Measurements(Ragged):
    """Measured numbers and what they were measured on; make one with `build` or `from_records`.

    Attributes
    ----------
    studies, genes, alleles, environments, phenotypes, traits, replicates, references : tuples
        What the codes below refer to; genes are systematic names (or names of foreign genes).
    gene, allele : int32 [Σk]
        Perturbed gene and its allele, mutants one after the other.
    kind : uint8 [Σk]
        `PerturbationKind`.
    dose : float64 [Σk]
        Copies, or expression relative to wild type; NaN where it is not stated.
    offsets : int64 [M+1]
        Where each mutant's perturbations begin; a wild type has none.
    study, environment, phenotype, trait, replicate, reference : int32 [M]
        Codes.
    value, sd, se, p : float64 [M]
        The number, its standard deviation over replicates, its standard error and p-value (NaN: not known).
    n : int64 [M]
        Replicates behind the number; 0 where it is not stated.

    Codes are kept in 32 bits, and a column of one number in the memory of one (`ragged.compact`): the screen
    of 2016 has 41 million measurements.

    Raises
    ------
    DatasetError
        Naming the first row that no `Measurement` record would accept.
    """

    ENTRIES: ClassVar[tuple[str, ...]] = ("gene", "kind", "allele", "dose")
    ROWS: ClassVar[tuple[str, ...]] = (
        "study", "environment", "phenotype", "trait", "value", "sd", "se", "p", "n", "replicate", "reference",
    )  # fmt: skip

    studies: tuple[Study, ...]
    genes: tuple[str, ...]
    alleles: tuple[str, ...]
    environments: tuple[Environment, ...]
    phenotypes: tuple[PhenotypeDefinition, ...]
    traits: tuple[str, ...]
    replicates: tuple[str, ...]
    references: tuple[str, ...]
    gene: Codes
    kind: NDArray[np.uint8]
    allele: Codes
    dose: Floats
    study: Codes
    environment: Codes
    phenotype: Codes
    trait: Codes
    value: Floats
    sd: Floats
    se: Floats
    p: Floats
    n: Ints
    replicate: Codes
    reference: Codes

    def __post_init__(self) -> None:
        self.check_lengths(DatasetError)
        for name in ("genes", "alleles", "traits", "replicates", "references"):
            texts: tuple[str, ...] = getattr(self, name)
            for text in texts:
                if fault := name_fault(text):
                    raise DatasetError(f"{name} of measurements: {fault}")
                if text != text.strip():
                    raise DatasetError(f"{name} of measurements hold {text!r}: remove surrounding blanks")
        if "" in self.genes:
            raise DatasetError("genes of measurements hold an empty name: name every gene")
        for name, count in self._sizes().items():
            codes = getattr(self, name)
            if codes.size and not (codes.min() >= 0 and codes.max() < count):
                raise DatasetError(f"a code of {name} is outside 0 … {count - 1}")
        self._refuse(~np.isfinite(self.value), "a value that is not a number")
        self._refuse((self.sd < 0) | (self.se < 0), "a negative sd or se")
        self._refuse(np.isinf(self.sd) | np.isinf(self.se), "an infinite sd or se")
        self._refuse((self.p < 0) | (self.p > 1), "a p-value outside 0 … 1")
        self._refuse(self.n < 0, "a negative number of replicates")
        self._refuse(self.holding(np.isinf(self.dose)), "an infinite dose")
        # A trait is named exactly where the phenotype does not describe the cell as a whole.
        of_cell = np.array([phenotype.level == "cell" for phenotype in self.phenotypes], bool)
        named = np.array([bool(trait) for trait in self.traits], bool)
        if len(self):
            self._refuse(
                of_cell[self.phenotype] == named[self.trait],
                "a trait for a phenotype of the whole cell, or none where one is needed",
            )
        self._refuse_repeated_perturbations()
        for name in (*self.ENTRIES, *self.ROWS):
            column = getattr(self, name)
            # A frozen record: this is the one place that writes.
            object.__setattr__(
                self, name, compact(column.astype(np.int32, copy=False) if name in NAMES else column)
            )

    def _sizes(self) -> dict[str, int]:
        return {
            "gene": len(self.genes),
            "kind": len(PerturbationKind),
            "allele": len(self.alleles),
            "study": len(self.studies),
            "environment": len(self.environments),
            "phenotype": len(self.phenotypes),
            "trait": len(self.traits),
            "replicate": len(self.replicates),
            "reference": len(self.references),
        }

    def _refuse(self, wrong: NDArray[np.bool_], what: str) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            names = ", ".join(self.genes[g] for g in self.gene[self.offsets[row] : self.offsets[row + 1]])
            raise DatasetError(
                f"measurement {row + 1} of {self.studies[self.study[row]].name} ({names or 'wild type'}) "
                f"has {what}"
            )

    def _refuse_repeated_perturbations(self) -> None:
        wrong = np.zeros(len(self), bool)
        doses = self._doses
        for block in self.blocks(BLOCK):
            offsets = self.offsets[block.start : block.stop + 1]
            code = self._perturbation_code(doses, slice(offsets[0], offsets[-1]))
            for _, rows, at in rows_by_order(offsets - offsets[0]):
                codes = np.sort(code[at], axis=1)
                wrong[block][rows] = (codes[:, 1:] == codes[:, :-1]).any(axis=1)
        self._refuse(wrong, "one perturbation twice")

    @classmethod
    def build(
        cls,
        study: Study,
        *,
        genes: Sequence[str],
        gene: ArrayLike,
        value: ArrayLike,
        offsets: ArrayLike | None = None,
        kind: ArrayLike = PerturbationKind.DELETION,
        allele: Texts | None = None,
        dose: ArrayLike | None = None,
        environments: Sequence[Environment] = (Environment(),),
        environment: ArrayLike = 0,
        phenotypes: Sequence[PhenotypeDefinition],
        phenotype: ArrayLike = 0,
        trait: Texts | None = None,
        sd: ArrayLike = np.nan,
        se: ArrayLike = np.nan,
        p: ArrayLike = np.nan,
        n: ArrayLike = 0,
        replicate: Texts | str = "",
        reference: Texts | str = "",
    ) -> Measurements:
        """Build from whatever a parser has; a single value of a column applies to all rows.

        Parameters
        ----------
        study : Study
            Where all rows come from.
        genes : sequence of str
            Names that `gene` refers to, such as ``GeneIndex.names``.
        gene : int [M, k] or [Σk]
            Positions; flat ones need `offsets` [M+1].
        kind, allele, dose
            Per perturbation, in the layout of `gene`.
        environment, phenotype
            Position per row in `environments` and `phenotypes`.
        trait, replicate, reference
            Text per row.
        """
        genes_of = np.asarray(gene, dtype=np.int64)
        values = np.asarray(value, dtype=np.float64).reshape(-1)
        rows = len(values)
        if offsets is None:
            starts = np.arange(rows + 1, dtype=np.int64) * (genes_of.shape[1] if genes_of.ndim == 2 else 1)
        else:
            starts = np.asarray(offsets, dtype=np.int64)
        flat = genes_of.shape

        def each(given: ArrayLike, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
            return np.ascontiguousarray(np.broadcast_to(np.asarray(given, dtype=dtype), shape)).reshape(-1)

        def texts(given: Texts | str | None, shape: tuple[int, ...]) -> tuple[tuple[str, ...], Codes]:
            if given is None or isinstance(given, str):
                return (given or "",), np.zeros(int(np.prod(shape)), np.int64)
            if isinstance(given, Coded):
                return given
            return coded(np.asarray(given, dtype=object).reshape(-1))

        alleles, allele_code = texts(allele, flat)
        traits, trait_code = texts(trait, (rows,))
        replicates, replicate_code = texts(replicate, (rows,))
        references, reference_code = texts(reference, (rows,))
        return cls(
            studies=(study,),
            genes=tuple(genes),
            alleles=alleles,
            environments=tuple(environments),
            phenotypes=tuple(phenotypes),
            traits=traits,
            replicates=replicates,
            references=references,
            gene=genes_of.reshape(-1),
            kind=each(kind, np.uint8, flat),
            allele=allele_code,
            dose=each(np.nan if dose is None else dose, np.float64, flat),
            offsets=starts,
            study=np.zeros(rows, np.int64),
            environment=each(environment, np.int64, (rows,)),
            phenotype=each(phenotype, np.int64, (rows,)),
            trait=trait_code,
            value=values,
            sd=each(sd, np.float64, (rows,)),
            se=each(se, np.float64, (rows,)),
            p=each(p, np.float64, (rows,)),
            n=each(n, np.int64, (rows,)),
            replicate=replicate_code,
            reference=reference_code,
        )

    @classmethod
    def from_records(cls, studies: Sequence[Study], records: Iterable[Measurement]) -> Measurements:
        """Build from records; raises ``DatasetError`` if one names a study that is not among `studies`."""
        given = list(records)
        named = {study.name: code for code, study in enumerate(studies)}
        missing = next((record.study for record in given if record.study not in named), None)
        if missing is not None:
            raise DatasetError(f"a measurement names the study {missing!r}, which is not among those given")
        flat = [p for record in given for p in record.genotype.perturbations]
        genes, gene = coded([p.gene for p in flat])
        environments = list({record.environment.id: record.environment for record in given}.values())
        phenotypes = list({record.phenotype.id: record.phenotype for record in given}.values())
        environment_code = {environment.id: code for code, environment in enumerate(environments)}
        phenotype_code = {phenotype.id: code for code, phenotype in enumerate(phenotypes)}
        built = cls.build(
            studies[0],
            genes=genes,
            gene=gene,
            offsets=np.cumsum([0] + [len(record.genotype.perturbations) for record in given]),
            kind=np.array([p.kind for p in flat], dtype=np.uint8),
            allele=[p.allele for p in flat],
            dose=np.array([p.dose for p in flat], dtype=np.float64),
            environments=environments,
            environment=[environment_code[r.environment.id] for r in given],
            phenotypes=phenotypes,
            phenotype=[phenotype_code[r.phenotype.id] for r in given],
            trait=[r.trait for r in given],
            value=[r.value for r in given],
            sd=[r.sd for r in given],
            se=[r.se for r in given],
            p=[r.p for r in given],
            n=[r.n for r in given],
            replicate=[r.replicate for r in given],
            reference=[r.reference for r in given],
        )
        study = np.array([named[record.study] for record in given], dtype=np.int64)
        return replace(built, studies=tuple(studies), study=study)

    @classmethod
    def concatenate(cls, parts: Sequence[Measurements]) -> Measurements:
        """Return the rows of several, one after the other; equal studies, environments … become one."""
        if not parts:
            raise DatasetError("no measurements to put together, expected at least one part")
        merged: dict[str, Any] = {}
        for code, names in NAMES.items():
            known: dict[Any, int] = {}
            columns = []
            for part in parts:
                entries = getattr(part, names)
                keys = [entry if isinstance(entry, str) else entry.id for entry in entries]
                merged.setdefault(names, []).extend(
                    entry
                    for key, entry in zip(keys, entries, strict=True)
                    if key not in known and known.setdefault(key, len(known)) >= 0
                )
                table = np.array([known[key] for key in keys], dtype=np.int32)
                columns.append(recoded(table, getattr(part, code)) if len(table) else getattr(part, code))
            merged[code] = joined_columns(columns)
            merged[names] = tuple(merged[names])
        numbers = [name for name in (*cls.ENTRIES, *cls.ROWS) if name not in NAMES]
        return cls(**merged, **cls.joined(parts, numbers))

    @property
    def _doses(self) -> Coded:
        """The different doses, as texts of their bits, and which of them [Σk] every perturbation has."""
        # By bits, not by value: NaN equals NaN, and 0 differs from -0, as in the records' ids.
        spelled = bits(self.dose)
        first = spelled[:1] if is_repeated(spelled) else spelled
        distinct, code = np.unique(first, return_inverse=True)
        return Coded(
            tuple(map(str, distinct)), repeated(code, len(spelled)) if len(first) < len(spelled) else code
        )

    def _perturbation_code(self, doses: Coded, at: slice = slice(None)) -> Ints:
        sizes = self._sizes()
        return joint(
            [
                (self.gene[at], sizes["gene"]),
                (self.kind[at], sizes["kind"]),
                (self.allele[at], sizes["allele"]),
                (doses.code[at], len(doses.names)),
            ]
        )

    @cached_property
    def distinct_perturbations(self) -> tuple[list[Perturbation], Ints]:
        """The different perturbations, and which of them [Σk] every perturbation is."""
        _, first, code = np.unique(
            self._perturbation_code(self._doses), return_index=True, return_inverse=True
        )
        distinct = [
            Perturbation(
                gene=self.genes[self.gene[i]],
                kind=PerturbationKind(int(self.kind[i])),
                allele=self.alleles[self.allele[i]],
                dose=float(self.dose[i]),
            )
            for i in first
        ]
        return distinct, code.reshape(-1)

    @property
    def perturbation(self) -> Ints:
        """Number [Σk] of every perturbation: equal for equal gene, kind, allele and dose."""
        return self.distinct_perturbations[1]

    @cached_property
    def genotype_key(self) -> NDArray[np.uint64]:
        """The two halves of every row's `Genotype.id` [M, 2]."""
        distinct, code = self.distinct_perturbations
        ids = [p.id for p in distinct]
        out = np.empty((len(self), 2), np.uint64)
        for half in range(2):
            digest = np.array([int(i[16 * half : 16 * half + 16], 16) for i in ids], dtype=np.uint64)
            # Unsigned sums wrap modulo 2⁶⁴, as the ids of records do.
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(digest[code])])
            out[:, half] = total[self.offsets[1:]] - total[self.offsets[:-1]]
        return out

    @cached_property
    def genotypes(self) -> tuple[Ints, Ints]:
        """One row [G] of every different genotype, by ascending id, and the genotype [M] of every row."""
        key = self.genotype_key
        code = ranks(key[:, 0], key[:, 1])
        return first_of_each(code), code

    def genotype(self, row: int) -> Genotype:
        """Return the mutant of one row."""
        distinct, code = self.distinct_perturbations
        span = code[self.offsets[row] : self.offsets[row + 1]]
        return Genotype(perturbations=tuple(distinct[c] for c in span))

    def records(self) -> Iterator[Measurement]:
        """Yield every row as a checked record."""
        for row in range(len(self)):
            yield Measurement(
                study=self.studies[self.study[row]].name,
                genotype=self.genotype(row),
                environment=self.environments[self.environment[row]],
                phenotype=self.phenotypes[self.phenotype[row]],
                trait=self.traits[self.trait[row]],
                value=float(self.value[row]),
                sd=float(self.sd[row]),
                se=float(self.se[row]),
                p=float(self.p[row]),
                n=int(self.n[row]),
                replicate=self.replicates[self.replicate[row]],
                reference=self.references[self.reference[row]],
            )
