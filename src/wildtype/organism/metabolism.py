"""`Metabolism`: reactions, metabolites and the gene rules (GPRs) that decide which reactions a mutant keeps.

A rule is expanded once to a disjunction of minimal complexes: the reaction lives while one of them has all
its genes. Which reactions die in M mutants is then two sparse products, mutant × complex and mutant ×
reaction, that touch only the complexes a removed gene is part of.

Legend: m mutants · r reactions · c complexes · g genes in rules.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.characters import first_fault
from wildtype.errors import ConfigError, SourceError, reason_of
from wildtype.files import cache_dir, content_hash, sha256_of_file, writing
from wildtype.organism.gene_rules import minimal_complexes, parse_rule, rule_genes
from wildtype.organism.genes import GeneIndex
from wildtype.unpacking import opened

FORMAT = 1
LARGEST_MODEL = 256 << 20
"""Unpacked size in bytes that a model file may have; a larger one is damaged or hostile."""
ABSENT = 0
"""The one kind of perturbation that takes a gene away (``Kind.ABSENT``, which lives a layer above)."""

_TEXTS = ("reactions", "metabolites", "genes", "rules")
_VECTORS = ("lower", "upper", "objective", "has_rule")
_MATRICES = ("stoichiometry", "complex_gene", "reaction_complex")
_PARTS = ("data", "indices", "indptr")


class Perturbations(Protocol):
    """What ``Metabolism`` reads of a table of mutants."""

    @property
    def gene(self) -> NDArray[np.int64]:
        """Positions in the gene index [Σk]."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Row i owns ``gene[offsets[i]:offsets[i+1]]`` [M+1]."""

    @property
    def kind(self) -> NDArray[np.uint8]:
        """What was done to each gene [Σk]."""


@dataclass(frozen=True, eq=False)
class Metabolism:
    """A metabolic network with gene rules; keyed by gene name, so it is independent of any gene index.

    Attributes
    ----------
    reactions, metabolites, genes : tuple of str
        Identifiers; ``genes`` are the systematic names used in rules, sorted.
    stoichiometry : csr [metabolites, R] of float64
        Negative: consumed in the forward direction.
    lower, upper, objective : float64 [R]
        Flux bounds (mmol per gram dry weight and hour); coefficients of the objective, which is maximised.
    rules : tuple of str [R]
        The gene rules as the model gives them; empty where there is none.
    complex_gene : csr [C, genes] of float64
        1 where a minimal complex needs a gene. Reactions share complexes of equal genes.
    reaction_complex : csr [R, C] of float64
        1 where a complex is enough for a reaction.
    has_rule : bool [R]
        Reactions with a rule; the others are alive in every mutant.
    """

    reactions: tuple[str, ...]
    metabolites: tuple[str, ...]
    genes: tuple[str, ...]
    stoichiometry: sparse.csr_array
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    objective: NDArray[np.float64]
    rules: tuple[str, ...]
    complex_gene: sparse.csr_array
    reaction_complex: sparse.csr_array
    has_rule: NDArray[np.bool_]

    def __repr__(self) -> str:
        return (
            f"Metabolism({len(self.reactions):,} reactions, {len(self.metabolites):,} metabolites, "
            f"{len(self.genes):,} genes)"
        )

    @classmethod
    def build(
        cls,
        reactions: Iterable[str],
        metabolites: Iterable[str],
        stoichiometry: sparse.csr_array,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        objective: NDArray[np.float64],
        rules: Iterable[str],
    ) -> Metabolism:
        """Build a network from its arrays, expanding the rule text [R] of every reaction.

        Raises
        ------
        SourceError
            If a rule cannot be parsed or expands too far, if the arrays do not fit each other, or if an
            identifier holds a hidden character.
        """
        reactions, metabolites, rules = tuple(reactions), tuple(metabolites), tuple(t.strip() for t in rules)
        if stoichiometry.shape != (len(metabolites), len(reactions)) or not (
            len(lower) == len(upper) == len(objective) == len(rules) == len(reactions)
        ):
            raise SourceError(
                f"the arrays of a metabolism do not fit: stoichiometry {stoichiometry.shape}, "
                f"{len(metabolites)} metabolites, {len(reactions)} reactions, {len(rules)} rules"
            )
        genes = tuple(sorted(set().union(*(rule_genes(text) for text in rules))))
        for what, names in (("reaction", reactions), ("metabolite", metabolites), ("gene of a rule", genes)):
            if fault := first_fault(names):
                raise SourceError(f"{what} {fault}")
        column = {gene: i for i, gene in enumerate(genes)}
        known: dict[frozenset[str], int] = {}
        pairs: list[tuple[int, int]] = []
        for r, (name, text) in enumerate(zip(reactions, rules, strict=True)):
            rule = parse_rule(text, f"reaction {name!r}")
            if rule is not None:
                for members in minimal_complexes(rule, f"reaction {name!r}"):
                    pairs.append((r, known.setdefault(members, len(known))))
        members_of = [(c, column[gene]) for members, c in known.items() for gene in sorted(members)]
        return cls(
            reactions,
            metabolites,
            genes,
            _csr(stoichiometry, stoichiometry.shape),
            np.asarray(lower, np.float64),
            np.asarray(upper, np.float64),
            np.asarray(objective, np.float64),
            rules,
            _incidence(members_of, (len(known), len(genes))),
            _incidence(pairs, (len(reactions), len(known))),
            np.array([bool(text) for text in rules], dtype=bool),
        )

    @classmethod
    def from_cobra(cls, model: Any) -> Metabolism:
        """Build a network from a ``cobra.Model``: its present bounds and linear objective, as a maximum."""
        from cobra.util.array import create_stoichiometric_matrix
        from cobra.util.solver import linear_reaction_coefficients

        # A minimum of f is a maximum of −f; the network keeps maxima only.
        sign = 1.0 if model.objective_direction == "max" else -1.0
        objective = {r.id: sign * float(c) for r, c in linear_reaction_coefficients(model).items()}
        return cls.build(
            [r.id for r in model.reactions],
            [m.id for m in model.metabolites],
            sparse.csr_array(create_stoichiometric_matrix(model, array_type="dok").tocsr()),
            np.array([r.lower_bound for r in model.reactions], np.float64),
            np.array([r.upper_bound for r in model.reactions], np.float64),
            np.array([objective.get(r.id, 0.0) for r in model.reactions], np.float64),
            [r.gene_reaction_rule for r in model.reactions],
        )

    @cached_property
    def reaction_gene(self) -> sparse.csr_array:
        """1 where a rule lists a gene, csr [R, genes]."""
        column = {gene: i for i, gene in enumerate(self.genes)}
        pairs = [(r, column[g]) for r, text in enumerate(self.rules) for g in sorted(rule_genes(text))]
        return _incidence(pairs, (len(self.reactions), len(self.genes)))

    @cached_property
    def sha256(self) -> str:
        """Content hash of the network, its bounds, objective and rules."""
        s = self.stoichiometry
        return content_hash(
            list(self.reactions),
            list(self.metabolites),
            list(self.rules),
            self.lower,
            self.upper,
            self.objective,
            s.indptr.astype(np.int64),
            s.indices.astype(np.int64),
            s.data,
        )

    def gene_columns(self, genes: GeneIndex) -> NDArray[np.int64]:
        """Return [n] the column of every gene of an index in ``self.genes``; -1 for a gene in no rule."""
        column = {gene: i for i, gene in enumerate(self.genes)}
        return np.array([column.get(name, -1) for name in genes.names], dtype=np.int64)

    def gpr(self, genes: GeneIndex) -> sparse.csr_array:
        """Return 1 where a rule lists a gene of an index [n], csr [R, n]: the gene–reaction edges."""
        column = self.gene_columns(genes)
        known = np.flatnonzero(column >= 0)
        place = _csr((np.ones(known.size), (column[known], known)), (len(self.genes), len(genes)))
        return _csr(self.reaction_gene @ place, (len(self.reactions), len(genes)))

    @cached_property
    def _gene_reaction(self) -> sparse.csr_array:
        return sparse.csr_array(self.reaction_gene.T)

    @cached_property
    def _gene_complex(self) -> sparse.csr_array:
        return sparse.csr_array(self.complex_gene.T)

    @cached_property
    def _complex_reaction(self) -> sparse.csr_array:
        return sparse.csr_array(self.reaction_complex.T)

    def dead_reactions(
        self, genes: GeneIndex, table: Perturbations, *, rule: str = "gpr"
    ) -> sparse.csr_array:
        """Return the reactions that each of M mutants loses, bool csr [M, R]; time and memory are O(hits).

        Parameters
        ----------
        genes : GeneIndex
            What the table's gene positions refer to; a gene in no rule takes no reaction away.
        table : Perturbations
            M mutants; only absent genes count, not reduced, added or overexpressed ones.
        rule : {"gpr", "all"}
            Whether the rule must still hold, or all genes that it lists must be there.

        Raises
        ------
        ConfigError
            If ``rule`` is neither.
        """
        if rule not in ("gpr", "all"):
            raise ConfigError(f"{rule!r} is not a way to read gene rules; choose 'gpr' or 'all'")
        column = self.gene_columns(genes)[table.gene]
        counts = (table.kind == ABSENT) & (column >= 0)
        rows = len(table.offsets) - 1
        row = np.repeat(np.arange(rows), np.diff(table.offsets))[counts]
        return self.dead_without(row, column[counts], rows, rule=rule)

    def dead_without(
        self, row: NDArray[np.int64], column: NDArray[np.int64], rows: int, *, rule: str = "gpr"
    ) -> sparse.csr_array:
        """Return the reactions that each of M mutants loses, bool csr [M, R], given the genes it lacks.

        Parameters
        ----------
        row, column : int64 [e]
            Mutant ``row[i]`` lacks gene ``column[i]`` of ``self.genes``; each pair once.
        rows : int
            M.
        rule : {"gpr", "all"}
            As in ``dead_reactions``.
        """
        lost = _csr((np.ones(row.size), (row, column)), (rows, len(self.genes)))
        if rule == "all":
            dead = sparse.csr_array(lost @ self._gene_reaction)
        else:
            broken = sparse.csr_array(lost @ self._gene_complex)
            # A complex that lost several genes is broken once.
            broken.data[:] = 1.0
            dead = sparse.csr_array(broken @ self._complex_reaction)
            # a reaction dies when as many of its complexes are broken as it has
            dead.data = (dead.data == np.diff(self.reaction_complex.indptr)[dead.indices]).astype(np.float64)
            dead.eliminate_zeros()
        dead.sort_indices()
        return sparse.csr_array((np.ones(dead.nnz, bool), dead.indices, dead.indptr), shape=dead.shape)

    def alive(self, genes: GeneIndex, table: Perturbations, *, rule: str = "gpr") -> NDArray[np.bool_]:
        """Return which reactions each mutant keeps, bool [M, R]; ``dead_reactions`` is the same, sparse."""
        return ~self.dead_reactions(genes, table, rule=rule).toarray()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the network as a flat dict of arrays that ``np.savez`` stores without pickle."""
        out: dict[str, NDArray[Any]] = {"format": np.array(FORMAT)}
        for name in _TEXTS:
            # one string with line ends: an array of strings would pad every rule to the longest
            out[name] = np.array("".join(text + "\n" for text in getattr(self, name)))
        for name in _VECTORS:
            out[name] = getattr(self, name)
        for name in _MATRICES:
            matrix = getattr(self, name)
            out |= {f"{name}.{part}": getattr(matrix, part) for part in _PARTS}
            out[f"{name}.shape"] = np.array(matrix.shape)
        return out

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Metabolism:
        """Rebuild a network from ``to_arrays``.

        Raises
        ------
        SourceError
            If arrays are missing or of another format.
        """
        try:
            if int(arrays["format"]) != FORMAT:
                raise SourceError(f"a stored metabolism has format {int(arrays['format'])}, not {FORMAT}")
            fields: dict[str, Any] = {}
            for name in _TEXTS:
                fields[name] = tuple(str(arrays[name]).split("\n")[:-1])
            for name in _VECTORS:
                fields[name] = np.array(arrays[name])
            for name in _MATRICES:
                parts = tuple(arrays[f"{name}.{part}"] for part in _PARTS)
                fields[name] = _csr(parts, tuple(int(d) for d in arrays[f"{name}.shape"]))
        except KeyError as error:
            raise SourceError(
                f"a stored metabolism lacks the array {error}: build it from its model"
            ) from None
        return cls(**fields)


def _csr(parts: Any, shape: Any) -> sparse.csr_array:
    """Build a float64 csr from (data, indices, indptr), (data, (rows, cols)) or another sparse array."""
    out = sparse.csr_array(parts, shape=shape, dtype=np.float64)
    out.sort_indices()
    return out


def _incidence(pairs: list[tuple[int, int]], shape: tuple[int, int]) -> sparse.csr_array:
    index = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _csr((np.ones(len(index)), (index[:, 0], index[:, 1])), shape)


def _read_model(path: Path) -> Any:
    """Read a model file with cobra, which knows the dialects of SBML and of the yeast consortium's YAML."""
    suffixes = "".join(path.suffixes[-2:]).lower()
    from cobra.io import from_json, load_yaml_model, read_sbml_model

    suffixes = suffixes.removesuffix(".gz")
    if suffixes.endswith(".json"):
        return from_json(_read_text(path))
    if suffixes.endswith((".xml", ".sbml")):
        text = _read_text(path)
        if "<sbml" not in text:  # cobra would take it for the name of a file
            raise ValueError("it holds no <sbml> element")
        return read_sbml_model(text)
    if suffixes.endswith((".yml", ".yaml")):
        return load_yaml_model(io.StringIO(_read_text(path)))
    raise SourceError(
        f"{str(path)!r} is no metabolic model that can be read: give .xml, .yml or .json, plain or .gz"
    )


def _read_text(path: Path) -> str:
    """Return the text of a plain or gzip-compressed file of at most `LARGEST_MODEL` bytes."""
    with opened(path) as stream:
        data = stream.read(LARGEST_MODEL + 1)
    if len(data) > LARGEST_MODEL:
        raise ValueError(f"it holds more than {LARGEST_MODEL >> 20} MiB, expected far less")
    return data.decode("utf-8")


def read_metabolism(path: str | Path, cache: bool = True) -> Metabolism:
    """Read a metabolic model (SBML, YAML, JSON, plain or gzipped); keeps the parsed arrays in the cache.

    Parsing a consensus model takes tens of seconds, reading the kept arrays milliseconds; they are found by
    the SHA-256 of the file.

    Raises
    ------
    SourceError
        If the file is missing, of another kind, or cannot be parsed.
    """
    path = Path(path)
    if not path.is_file():
        raise SourceError(f"there is no metabolic model at {str(path)!r}: fetch it first or correct the path")
    kept = cache_dir() / "metabolism" / f"{sha256_of_file(path)}.npz"
    if cache and kept.is_file():
        try:
            with np.load(kept, allow_pickle=False) as arrays:
                return Metabolism.from_arrays(arrays)
        except (SourceError, ValueError, OSError, EOFError, zipfile.BadZipFile):
            pass  # damaged or of an older format: parsed anew below and overwritten
    try:
        with warnings.catch_warnings():
            # cobra warns of a rule that it cannot parse and goes on without it: its genes would be lost
            warnings.simplefilter("error", SyntaxWarning)
            model = _read_model(path)
    except SourceError:
        raise
    except Exception as error:  # cobra raises whatever its parsers do
        raise SourceError(
            f"{str(path)!r} cannot be parsed as a metabolic model ({reason_of(error)}): fetch it again"
        ) from error
    try:
        metabolism = Metabolism.from_cobra(model)
    except SourceError as error:
        raise SourceError(f"{str(path)!r}: {error}") from error
    if cache:
        with writing(kept) as temporary, open(temporary, "wb") as handle:
            np.savez_compressed(handle, **metabolism.to_arrays())  # type: ignore[arg-type]
    return metabolism
