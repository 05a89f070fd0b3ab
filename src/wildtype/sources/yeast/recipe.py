"""A recipe: which stored measurements become a dataset, how, and what its card tells about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.datasets.background import Background, add_background
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport, StageReport
from wildtype.datasets.stages.build import DEFAULT, build_dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.storage import dataset_key, materialise
from wildtype.datasets.store import Query, Store
from wildtype.errors import DatasetError
from wildtype.files import content_hash
from wildtype.mutants import Kind
from wildtype.organism import Organism
from wildtype.sources.yeast.screens.screen_grid import (
    LINKED_KB,
    Screened,
    cut_of,
    grid_2010,
    unreserved,
    with_grid,
    within,
)

VERSION = 2
"""Raised whenever equal measurements and an equal recipe give another dataset or another card than before."""
UNCHOSEN = "measurement that the dataset is not about"
FURTHER = "second measurement of one row"
Floats = NDArray[np.float32]
Fact = str | Callable[[Dataset], str]
Guide = Callable[[Dataset, Dataset | None], str]
Step = Callable[[Measurements], tuple[Measurements, StageReport]]


@dataclass(frozen=True)
class Singles:
    """Where the fitness of single mutants comes from.

    Attributes
    ----------
    studies : tuple of str
        What the store must hold.
    query : Query
        Gives fitness of single mutants, others left aside, of one phenotype.
    about : str
        How it is made, for the card.
    """

    studies: tuple[str, ...]
    query: Query
    about: str


@dataclass(frozen=True)
class GridSource:
    """Where the grid of a screen comes from, of which the dataset lists the significant crosses.

    Attributes
    ----------
    screen : Query
        All scores of the screen's table: their strains span the grid.
    reserved : Query
        Crosses and genes that are set aside; where the store has none, nothing is.
    dense : bool
        Whether the rows are all scores of the screen, and not its significant crosses.
    """

    screen: Query
    reserved: Query
    dense: bool = False

    def key(self, store: Store, organism: Organism, hash_of: Callable[[Query], str]) -> str:
        """Return a hash of everything that the grid is made from; ``hash_of`` gives that of a query."""
        places = {} if organism.coordinates is None else organism.coordinates.to_arrays()
        queries = (self.screen, self.reserved)
        stored = [hash_of(query) if _has(store, query) else "" for query in queries]
        return content_hash(*stored, LINKED_KB, *(places[name] for name in ("chromosome", "start", "end")))

    def screened(self, store: Store, organism: Organism, chosen: Measurements) -> Screened:
        """Return the grid of a dataset's measurements; raises ``DatasetError`` as `grid_2010`."""
        reserved = store.select(self.reserved) if _has(store, self.reserved) else None
        # All scores are chosen already: 20 million of them are not held twice.
        measured = chosen if self.dense else store.select(self.screen)
        return grid_2010(measured, organism, reserved, dense=self.dense)


@dataclass(frozen=True, eq=False)
class Recipe:
    """How one dataset is made from a store.

    Attributes
    ----------
    name : str
        Name of the dataset.
    studies : tuple of str
        Studies whose measurements it holds.
    query : Query
        The measurements.
    targets : tuple of str
        Phenotypes that models predict; none: all there are.
    uses : tuple of str
        The reports on the studies' files (``ReadReport.use``) that the measurements are among, so that rows
        are counted from the file on; none: all of them.
    policies : Policies
        How rows are converted and merged; the alleles are for the caller to choose.
    step : callable, optional
        What is done to the measurements before the stages; returns what is left, and a report.
    background : Background, optional
        What is drawn beside listed calls, after the stages.
    singles : Singles, optional
        Fitness of single mutants.
    reserved : Query, optional
        Crosses and genes that are set aside, of a dataset without a grid: their rows are left out.
        Where the store has none, nothing is set aside.
    grid : GridSource, optional
        Which crosses the screen measured, whether the query selects them or not.
    tables : tuple of str
        Files of the studies, any of which gives its rows, where the studies are read without them too.
    phenotype : mapping
        What is special about the target phenotypes (``strong``, ``source``, ``selection``).
    notes : tuple of str or callable
        What a reader must know; a callable gets the dataset.
    noise : str or callable
        What is known about the noise of the labels; a callable gets the dataset with nothing
        averaged in it, and the one it is compared with, if the store has that.
    compared : Query, optional
        Measurements to compare with.
    """

    name: str
    studies: tuple[str, ...]
    query: Query
    targets: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    policies: Policies = DEFAULT
    step: Step | None = None
    background: Background | None = None
    singles: Singles | None = None
    reserved: Query | None = None
    grid: GridSource | None = None
    tables: tuple[str, ...] = ()
    phenotype: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Fact, ...] = ()
    noise: str | Guide = ""
    compared: Query | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """All studies that the store must hold."""
        return tuple(dict.fromkeys((*self.studies, *(self.singles.studies if self.singles else ()))))

    def lacking(self, store: Store) -> str:
        """Return why a dataset of optional tables of a study cannot be built; empty where it can be."""
        if not self.tables or _has(store, self.query):
            return ""
        return f"the store holds no row of {' or '.join(self.tables)}"

    def build(self, store: Store, organism: Organism, *, alleles: str = "averaged") -> Dataset:
        """Return the dataset; an equal recipe over equal measurements comes from the cache.

        Raises
        ------
        DatasetError
            If the store lacks a study, or no row is left.
        ConfigError
            If the allele policy is unknown.
        OutputError
            If the cache cannot be written.
        """
        policies = replace(self.policies, alleles=alleles)
        held = {stored.name: stored for stored in store.studies()}
        missing = [study for study in self.needed if study not in held]
        if missing:
            raise DatasetError(
                f"dataset {self.name!r} needs the study {missing[0]!r}, which {store.path} does not hold: "
                f"put its files into a folder and run `wildtype data build {organism.name} --from FOLDER`"
            )
        readings = [
            reading
            for study in self.studies
            for reading in held[study].readings
            if not self.uses or reading.use in self.uses
        ]
        # Without the study to compare with, the dataset is the same and the card only lacks one sentence.
        compared = self.compared if self.compared and _has(store, self.compared) else None
        reserved = self.reserved if self.reserved and _has(store, self.reserved) else None
        further = [query for query in (self.singles and self.singles.query, compared, reserved) if query]
        # The grid of a dense screen is made of the same rows as the dataset: millions, to be hashed once.
        hash_of = cache(store.content_hash)
        key = dataset_key(
            self.query.sql,
            hash_of(self.query),
            policies,
            organism,
            recipe=VERSION,
            name=self.name,
            targets=self.targets,
            phenotype={
                name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
                for name, value in self.phenotype.items()
            },
            further=[[query.sql, hash_of(query)] for query in further],
            readings=[asdict(reading) for reading in readings],
            citations=[held[study].citation for study in self.studies],
            # A callable's text depends on the rows, whose hash is in the key; a text that it makes is not.
            texts=[fact for fact in (*self.notes, self.noise) if isinstance(fact, str)],
            singles=self.singles.about if self.singles else "",
            step=self.step.__name__ if self.step else "",
            background=asdict(self.background) if self.background else None,
            **({"grid": self.grid.key(store, organism, hash_of)} if self.grid else {}),
        )
        dataset, _ = materialise(
            key, lambda: self._make(store, organism, policies, readings, compared), organism
        )
        return dataset

    def _make(
        self,
        store: Store,
        organism: Organism,
        policies: Policies,
        readings: Sequence[ReadReport],
        compared: Query | None,
    ) -> Dataset:
        # The step comes before the stages, whose reports then count what it left.
        chosen = store.select(self.query)
        before = _from_files(readings, self.query, len(chosen))
        if self.step is not None:
            chosen, report = self.step(chosen)
            before.append(report)
        screened = None if self.grid is None else self.grid.screened(store, organism, chosen)
        if screened is not None:
            chosen, report = within(chosen, screened, organism.genes)
            before.append(report)
        if self.reserved is not None and _has(store, self.reserved):
            chosen, report = unreserved(
                chosen, store.select(self.reserved), organism.genes, self.policies.neutral
            )
            before.append(report)

        def made(policies: Policies) -> Dataset:
            return build_dataset(
                chosen,
                organism,
                name=self.name,
                policies=policies,
                targets=self.targets or None,
                before=before,
            )

        dataset = made(policies)
        if self.background is not None:
            dataset = add_background(dataset, self.background)
        phenotypes = tuple(
            replace(p, **self.phenotype) if p.name in dataset.targets else p for p in dataset.phenotypes
        )
        dataset = replace(dataset, phenotypes=phenotypes)
        if screened is not None:
            cut = cut_of(reading.file for reading in readings)
            dataset = with_grid(dataset, screened.grid, cut, dense=self.grid is not None and self.grid.dense)
        if self.singles is not None:
            measured = store.select(self.singles.query)
            value, sd, kind, source = single_fitness(measured, organism, self.policies)
            dataset = replace(
                dataset,
                single_fitness=value,
                single_fitness_sd=sd,
                single_fitness_kind=kind,
                single_fitness_source=source,
                policies=dict(dataset.policies) | {"single fitness": self.singles.about},
            )
        noise = self.noise
        if callable(noise):
            # What is averaged cannot be compared: the guide sees every allele and replicate as a row.
            other = None
            if compared is not None:
                other = build_dataset(store.select(compared), organism, name="compared")
            noise = noise(made(replace(policies, alleles="apart", replicates="apart")), other)
        notes = [fact(dataset) if callable(fact) else fact for fact in self.notes]
        return replace(
            dataset,
            notes=(*notes, *dataset.notes),
            noise=noise or "no replicate measurements: no noise guide",
        )


def _has(store: Store, query: Query) -> bool:
    with store.query(f"SELECT count(*) AS rows FROM ({query.sql})") as batches:
        return bool(batches.read_all()["rows"][0].as_py())


def _from_files(readings: Sequence[ReadReport], query: Query, chosen: int) -> list[StageReport]:
    """Return the counts of the rows of the files, and of the measurements read from them."""
    if not readings:
        return []
    dropped: dict[str, int] = {}
    for reading in readings:
        for reason, count in reading.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    rows, kept, renamed = (
        sum(getattr(reading, name) for reading in readings) for name in ("rows", "kept", "renamed")
    )
    files = " + ".join(dict.fromkeys(reading.file for reading in readings))
    noted = {"gene under an older name of SGD": renamed}
    conditions = " AND ".join(query.conditions)
    return [
        StageReport("files", "read", files, rows, kept, dropped=dropped, noted=noted),
        StageReport(
            "raw",
            "query",
            conditions,
            kept,
            chosen,
            dropped={UNCHOSEN: max(kept - chosen, 0)},
            added={FURTHER: max(chosen - kept, 0)},
        ),
    ]


def single_fitness(
    measurements: Measurements, organism: Organism, policies: Policies = DEFAULT
) -> tuple[Floats, Floats, NDArray[np.uint8], str]:
    """Return fitness, sd and kind [n] of single mutants (NaN: not known), and the source of the numbers.

    A number listed twice for one allele counts once, alleles count alike, strains with a suppressor are
    left out, and a deletion goes before reduced alleles. In the reference condition only.

    Parameters
    ----------
    measurements : Measurements
        Of one phenotype; mutants of several genes (after neutral loci are taken out) are passed over.
    organism : Organism
        The n genes.
    policies : Policies
        As for the dataset; alleles are averaged in any case.

    Raises
    ------
    DatasetError
        If there is more than one phenotype, or no usable row.
    """
    dataset = build_dataset(
        measurements, organism, name="single mutants", policies=replace(policies, alleles="averaged")
    )
    if len(dataset.phenotypes) > 1:
        names = ", ".join(p.name for p in dataset.phenotypes)
        raise DatasetError(f"fitness of single mutants is one phenotype, received {names}: select one")
    table, n = dataset.table, len(organism.genes)
    value, sd = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
    kinds = np.full(n, Kind.ABSENT, np.uint8)
    singles = np.flatnonzero((table.order == 1) & (table.condition == 0))
    kind, gene = (column[table.offsets[:-1][singles]] for column in (table.kind, table.gene))
    for one in (Kind.REDUCED, Kind.ABSENT):  # deletions last: they replace the reduced alleles
        of_kind = kind == one
        value[gene[of_kind]] = table.value[singles[of_kind]]
        sd[gene[of_kind]] = table.sd[singles[of_kind]]
        kinds[gene[of_kind]] = one
    return value, sd, kinds, dataset.phenotypes[0].source
