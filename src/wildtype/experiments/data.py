"""The data of a run: its rows and genes, the labels models may see, the split, and scaled labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Dataset, Split
from wildtype.datasets.crosses import effect_phenotype, expand
from wildtype.datasets.draws import count_genes
from wildtype.datasets.pinned import read_pinned
from wildtype.datasets.provenance import sources_of_group
from wildtype.datasets.query_pairs import contains_pair
from wildtype.datasets.scaling import LabelScaler
from wildtype.datasets.subsets import subset
from wildtype.errors import ConfigError, SplitError
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.reference import PARTS, ReferenceMeasurements
from wildtype.experiments.crosses import cross_split, split_options, split_seed
from wildtype.experiments.other_screens import check_screens, visible_screen
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.mutants import MutantTable
from wildtype.mutants.grid import TRAIN, CrossSides, ScreenGrid, ScreenListing, VisibleCrosses
from wildtype.mutants.identity import grouping
from wildtype.organism import FeatureBlock, GeneFeatures, Organism
from wildtype.organism.controls import choose_relations, merge_relations, rewire_relations
from wildtype.sources.catalogue import IN_SILICO, load_dataset
from wildtype.sources.user_organisms.edges import read_relation


@dataclass(frozen=True, eq=False)
class Beyond:
    """The organism with the genes that a run does not encode: models are asked about these, too.

    Attributes
    ----------
    organism : Organism
        The n genes of the run, then the a others, with what may be seen for the run's targets.
    single_fitness, single_fitness_sd : float32 [a] or None
        Of the others. No row of the run has one of them, so that these are no label.
    """

    organism: Organism
    single_fitness: NDArray[np.float32] | None
    single_fitness_sd: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class RunData:
    """The inputs of all models of one run.

    Attributes
    ----------
    whole : Dataset
        All phenotypes of the dataset, on the run's genes.
    dataset : Dataset
        The rows of the run's phenotypes; its organism holds only features that may be seen for these targets.
    split : Split
        Of ``dataset``'s rows, checked for leaks.
    leakage : dict
        What the check found.
    scaler : LabelScaler
        Fitted on training rows.
    single_fitness : float32 [n] or None
        Fitness of single mutants as models may see it: never that of a validation or test row.
    grid : ScreenGrid or None
        All crosses that the dataset's screen measured, listed or not; hidden ones are unknown.
    sides : CrossSides or None
        The side of every cross; with a grid.
    external : tuple of Dataset
        Other datasets that are predicted, too, as they were loaded.
    others : tuple of Dataset
        Other screens, whose measurements of pairs are evidence, as they were loaded.
    unseen_in_others : bool
        Whether they may show genes that the split holds out.
    beyond : Beyond or None
        Genes of the organism that the run's models do not encode; None where they encode all.
    screen : ScreenListing or None
        The grid and its listed crosses as published, hidden ones included: it groups scored rows of external
        tests, and no model, baseline or prediction may see it. None without a grid or an external test.
    """

    whole: Dataset
    dataset: Dataset
    split: Split
    leakage: dict[str, object]
    scaler: LabelScaler
    single_fitness: NDArray[np.float32] | None
    grid: ScreenGrid | None = None
    sides: CrossSides | None = None
    external: tuple[Dataset, ...] = ()
    others: tuple[Dataset, ...] = ()
    unseen_in_others: bool = False
    beyond: Beyond | None = None
    screen: ScreenListing | None = None

    def part(self, name: str) -> MutantTable:
        """Return the rows of ``train``, ``validation`` or ``test``, labels as measured."""
        return self.dataset.table.take(getattr(self.split, name))

    def mutants(self, name: str) -> int:
        """Return how many mutants a part has: rows of equal genes, kinds, doses and condition are one."""
        part = self.part(name)
        found = grouping(part)
        return len(part) if found is None else len(found.first)

    def scaled(self, name: str) -> MutantTable:
        """Return the rows of a part with scaled labels."""
        return self.scaler.scaled(self.part(name))

    def features(self, leave_out: list[str]) -> GeneFeatures:
        """Return the blocks that a model is given: the organism's, and the visible single-mutant fitness.

        Raises
        ------
        ConfigError
            If ``leave_out`` names no block.
        """
        blocks = list(self.organism_without(leave_out).features.values())
        if self.single_fitness is not None and "single_fitness" not in leave_out:
            blocks.append(FeatureBlock("single_fitness", self.single_fitness[:, None], ("fitness",)))
        return GeneFeatures(blocks)

    def organism_without(self, leave_out: list[str]) -> Organism:
        """Return the organism without some feature blocks; errors as `without_features`."""
        return without_features(self.dataset.organism, leave_out)

    def measured_fitness(self) -> MutantTable:
        """Return the measured fitness of single and double mutants that closed forms may look at.

        Training rows where fitness is predicted. Where it is not: rows of gene sets that stand in no other
        row than training ones, without held-out genes and query pairs; none where whole screens are held out.
        """
        if "fitness" in (names := [p.name for p in self.dataset.phenotypes]):
            train = self.part("train")
            return train.take((train.phenotype == names.index("fitness")) & (train.order < 3))
        # Fitness of a pair and the epsilon of the same pair are one measurement: the fitness of a test mutant
        # must stay hidden although fitness is not the target. A held-out screen hides all of its fitness.
        t, split = self.whole.table, self.split
        if self.sides is not None and "fitness" in [p.name for p in self.whole.phenotypes]:
            return t.take(
                (t.phenotype == self.whole.phenotype_index("fitness")) & (self.sides.of_table(t) == TRAIN)
            )
        if split.held_out_screens or "fitness" not in [p.name for p in self.whole.phenotypes]:
            return t.take([])
        chosen = [self.whole.phenotype_index(name) for name in names]
        rows = np.flatnonzero(np.isin(t.phenotype, chosen))
        # Everything but training rows is hidden, also rows that the split dropped.
        hidden = np.ones(rows.size, bool)
        hidden[split.train] = False
        seen = (t.phenotype == self.whole.phenotype_index("fitness")) & (t.order < 3)
        # By gene set and not by row: another row of a test mutant would reveal its label.
        seen &= ~np.isin(t.set_id, t.set_id[rows[hidden]])
        return t.take(seen & ~self._held_out())

    def _held_out(self) -> NDArray[np.bool_]:
        """Return which rows of the whole dataset hold a held-out gene or query pair; all, of a split by
        screens.
        """
        t, split = self.whole.table, self.split
        if split.held_out_screens:
            return np.ones(len(t), bool)
        genes = self.whole.organism.genes
        held = np.zeros(len(genes), bool)
        held[[genes.find(name) for part in split.held_out_genes.values() for name in part]] = True
        out = count_genes(t, held) > 0
        pairs = [[genes.find(g) for g in pair] for part in split.held_out_pairs.values() for pair in part]
        if pairs:
            out |= contains_pair(t, np.sort(np.array(pairs, dtype=np.int64), axis=1), len(genes))
        return np.asarray(out)

    def crosses(self) -> VisibleCrosses | None:
        """Return what models and baselines may know of the grid's crosses; None without a grid."""
        return self.known().crosses()

    def _chosen(self) -> NDArray[np.int64]:
        """Return the position of every phenotype of the run among those of the whole dataset."""
        return np.array([self.whole.phenotype_index(p.name) for p in self.dataset.phenotypes])

    def _parts(self) -> NDArray[np.uint8]:
        """Return the part of the split [M], a position in ``PARTS``, of each row of the whole dataset."""
        # "hidden" rows of other phenotypes hold a held-out gene or pair: stored for users of the finished
        # model, but no evidence during training and testing.
        phenotype, hidden, unused = self.whole.table.phenotype, PARTS.index("hidden"), PARTS.index("unused")
        if self.sides is not None:
            # By cross: the fitness of a held-out cross would tell its epsilon, so it is hidden, too.
            part = np.array([*range(3), hidden], np.uint8)[self.sides.of_table(self.whole.table)]
            of_run = np.isin(phenotype, [*self._chosen(), effect_phenotype(self.whole)])
            return np.where(of_run, part, np.where(part == 0, unused, hidden)).astype(np.uint8)
        part = np.where(self._held_out(), hidden, unused).astype(np.uint8)
        rows = np.flatnonzero(np.isin(phenotype, self._chosen()))
        for code, name in enumerate(PARTS[:3]):
            part[rows[getattr(self.split, name)]] = code
        return part

    def _sampled(self) -> tuple[MutantTable | None, NDArray[np.uint8] | None]:
        """Return validation and test rows of a run on a grid, phenotypes numbered as in the whole dataset."""
        if self.grid is None:
            return None, None
        parts = [self.part(name) for name in PARTS[1:3]]
        table = MutantTable.concatenate(parts)
        table = replace(table, phenotype=self._chosen()[table.phenotype], weight=None)
        return table, np.repeat([1, 2], [len(part) for part in parts]).astype(np.uint8)

    def known(self) -> ReferenceMeasurements:
        """Return the measurements that a checkpoint stores, each marked with its part of the split."""
        return self._known

    @cached_property
    def _known(self) -> ReferenceMeasurements:
        # Made once: its visible crosses are a copy of most rows of a screen with a score for every cross.
        n, whole = len(self.whole.organism.genes), self.whole
        sampled, sampled_part = self._sampled()
        unknown = np.full(n, np.nan, np.float32)
        essential, part = whole.organism.essential, self._parts()
        return ReferenceMeasurements(
            phenotypes=tuple(p.name for p in whole.phenotypes),
            table=whole.table,
            part=part,
            single_fitness=unknown if whole.single_fitness is None else whole.single_fitness,
            single_fitness_sd=unknown if whole.single_fitness_sd is None else whole.single_fitness_sd,
            single_fitness_kind=whole.single_fitness_kind,
            essential=np.zeros(n, bool) if essential is None else essential,
            coordinates=whole.organism.coordinates,
            metabolic=whole.organism.metabolic,
            grid=self.grid,
            sides=self.sides,
            effect="" if self.grid is None else whole.phenotypes[effect_phenotype(whole)].name,
            sampled=sampled,
            sampled_part=sampled_part,
            dubious=whole.organism.dubious,
            screens=tuple(self._visible(other, part) for other in self.others),
        )

    def _visible(self, other: Dataset, part: NDArray[np.uint8]) -> OtherScreen:
        return visible_screen(
            other, self.whole, part, self.split, self.sides, self.external, unseen_genes=self.unseen_in_others
        )


def without_features(organism: Organism, leave_out: list[str]) -> Organism:
    """Return an organism without some feature blocks; raises ``ConfigError`` if there is none of a name."""
    for name in leave_out:
        if name not in organism.features and name != "single_fitness":
            known = ", ".join([*organism.features, "single_fitness"])
            raise ConfigError(f"model.leave_out names {name!r}; known feature blocks: {known}")
    kept = [block for name, block in organism.features.items() if name not in leave_out]
    return replace(organism, features=GeneFeatures(kept))


def prepare(config: TrainConfig, dataset: Dataset | None = None) -> RunData:
    """Load (or take) the dataset and make everything that a run needs of it.

    Raises
    ------
    DatasetError, SplitError, ConfigError
        Where names do not exist or a part stays empty.
    """
    whole = load_for(config) if dataset is None else dataset
    whole = replace(whole, organism=with_own(config, whole.organism))
    # Before the split: the split is of the rows that are left, and fewer rows are drawn from the targets
    # only.
    targets = config.data.phenotypes or list(whole.targets)
    if config.data.rows is not None:
        whole = _fewer(whole, targets, config.data.rows)
    # Labels of crosses follow from list and grid once the run's genes are known: only listed rows are there.
    chosen = whole.select(targets) if whole.grid is None else whole
    beyond = None
    if config.data.tokens == "measured":
        genes = chosen.measured_genes()
        other = np.ones(len(whole.organism.genes), bool)
        other[genes] = False
        if other.any():
            beyond = _beyond(config, whole, genes, np.flatnonzero(other))
        rows = ~whole.table.holding(other[whole.table.gene])
        whole = replace(whole, table=whole.table.take(rows)).restrict_genes(genes)
    chosen_organism = with_chosen_graphs(config, whole.organism)
    whole = whole if chosen_organism is whole.organism else replace(whole, organism=chosen_organism)
    drawn = None
    screen = _published_screen(whole) if config.data.also_test else None
    if whole.grid is None:
        chosen = whole.select(targets)
        split, counts = _split(config, chosen), {}
    else:
        whole, drawn, hidden = cross_split(config, whole)
        chosen, split, by_side = expand(
            whole,
            targets,
            drawn,
            unlisted=config.data.unlisted,
            most=config.data.crosses,
            most_listed=config.data.listed,
        )
        counts = {"crosses": by_side | {"hidden": hidden}}
    # A feature computed from the same publication as a label contains the label, also of test rows.
    sources = [source for p in chosen.phenotypes for source in p.sources]
    external = load_external(config, whole)
    others = _load_others(config, whole, "data.screens", config.data.screens)
    check_screens(others, whole)
    # So does one computed from the publication of an external label.
    sources += [source for other in external for source in other.first_target()[1].sources]
    for one in (whole, *external):
        sources = sorted(sources_of_group(sources, one.provenance))
    chosen.organism.graphs.check_allowed_for(sources)
    organism: Organism = replace(chosen.organism, features=chosen.organism.features.allowed_for(sources))
    if beyond is not None:
        allowed = beyond.organism.features.allowed_for(sources)
        beyond = replace(beyond, organism=replace(beyond.organism, features=allowed))
    if organism.name in IN_SILICO and organism.essential is not None:
        # Simulated essentiality is a threshold on simulated growth: a held-out single's label.
        organism = replace(organism, essential=organism.essential & ~_held_out_singles(chosen, split))
    chosen = replace(chosen, organism=organism)
    train = chosen.table.take(split.train)
    return RunData(
        whole=whole,
        dataset=chosen,
        split=split,
        leakage=split.check(chosen) | counts,
        # Mean and sd of training labels only: those of all rows would carry information about test labels.
        scaler=LabelScaler.of_table(train, chosen.phenotypes, flip=config.data.flip),
        single_fitness=_visible_single_fitness(chosen, split, sources),
        grid=whole.grid,
        sides=None if drawn is None else drawn.sides,
        external=external,
        others=others,
        unseen_in_others=config.data.unseen_in_screens,
        beyond=beyond,
        screen=screen,
    )


def _beyond(
    config: TrainConfig, whole: Dataset, genes: NDArray[np.int64], others: NDArray[np.int64]
) -> Beyond:
    """Return the organism with the encoded ``genes`` first, and what is known of the ``others``."""
    organism = whole.organism.restrict(np.concatenate([genes, others]))
    fitness, sd = (None if x is None else x[others] for x in (whole.single_fitness, whole.single_fitness_sd))
    return Beyond(with_chosen_graphs(config, organism), fitness, sd)


def _published_screen(whole: Dataset) -> ScreenListing | None:
    if whole.grid is None:
        return None
    return ScreenListing(whole.grid, whole.table.take(whole.table.phenotype == effect_phenotype(whole)))


def load_for(config: TrainConfig) -> Dataset:
    """Return the dataset that the settings name, on the variant of the organism that they name."""
    return load_dataset(config.data.name, organism=config.data.organism, progress=config.run.progress)


def with_own(config: TrainConfig, organism: Organism) -> Organism:
    """Return the organism with the features and gene graphs of the user's files."""
    for text in config.data.embeddings:
        name, path = named_file(text)
        organism = organism.with_features(path, name=name)
    for text in config.data.relations:
        name, path = named_file(text)
        organism = organism.with_relation(read_relation(path, organism, name=name))
    return organism


def named_file(text: str) -> tuple[str, Path]:
    """Return name and path of NAME=FILE, or of a file, which then gives the name."""
    name, mark, path = text.partition("=")
    if mark and not Path(text).exists():
        return name, Path(path)
    return Path(Path(text).name.removesuffix(".gz")).stem, Path(text)


def load_external(config: TrainConfig, dataset: Dataset) -> tuple[Dataset, ...]:
    """Return the datasets of ``data.also_test``; raises ``ConfigError`` if one is of another organism."""
    return _load_others(config, dataset, "data.also_test", config.data.also_test)


def _load_others(
    config: TrainConfig, dataset: Dataset, setting: str, names: list[str]
) -> tuple[Dataset, ...]:
    found = []
    for name in dict.fromkeys(names):
        other = load_dataset(name, organism=config.data.organism, progress=config.run.progress)
        if other.organism.name != dataset.organism.name:
            raise ConfigError(
                f"{setting} names {name!r}, a dataset of {other.organism.name}, and the run is on "
                f"{dataset.organism.name}: leave it out"
            )
        found.append(other)
    return tuple(found)


def with_chosen_graphs(config: TrainConfig, organism: Organism) -> Organism:
    """Return the organism, on a run's genes, with the gene graphs that its models and baselines see.

    Rewiring comes last, on the run's genes alone: the degrees kept are those of the graphs that models see.
    """
    organism = merge_relations(organism, config.data.merge)
    organism = choose_relations(organism, config.data.graphs, config.data.without)
    return rewire_relations(organism, config.seed) if config.data.rewired else organism


def _fewer(dataset: Dataset, targets: list[str], rows: int) -> Dataset:
    """Return a dataset with so many rows of the phenotypes ``targets``, and all rows of the others."""
    if dataset.grid is not None:
        raise ConfigError(
            f"data.rows={rows}: the rows of dataset {dataset.name!r} are drawn from the crosses of its grid; "
            f"leave data.rows out, and set data.listed, data.unlisted or data.crosses instead"
        )
    phenotypes = [dataset.phenotype_index(name) for name in targets]
    candidates = np.isin(dataset.table.phenotype, phenotypes)
    try:
        drawn = subset(dataset, np.flatnonzero(candidates), size=rows)
    except SplitError as error:
        raise ConfigError(f"data.rows={rows}: {error}") from error
    keep = ~candidates
    keep[drawn] = True
    return replace(dataset, table=dataset.table.take(keep))


def _split(config: TrainConfig, dataset: Dataset) -> Split:
    """Return the split that the settings describe, drawn or read from a file."""
    if config.split.hide:
        raise ConfigError(
            f"split.hide names {', '.join(config.split.hide)}, and dataset {dataset.name!r} has no grid of "
            f"crosses to hide pairs of: leave split.hide out"
        )
    if config.split.pinned:
        return read_pinned(config.split.pinned, dataset).split
    return dataset.split(config.split.name, split_seed(config), **split_options(config))


def _visible_single_fitness(dataset: Dataset, split: Split, sources: list[str]) -> NDArray[np.float32] | None:
    """Return single-mutant fitness without the labels of validation and test rows of single mutants."""
    # If both come from one source, epsilon was computed from exactly these values.
    if dataset.single_fitness is None or set(dataset.single_fitness_source.split(" + ")) & set(sources):
        return None
    visible = dataset.single_fitness.copy()
    visible[_held_out_singles(dataset, split)] = np.nan
    return visible


def _held_out_singles(dataset: Dataset, split: Split) -> NDArray[np.bool_]:
    """Return the genes [n] whose single mutant is a row, and one that is not in training."""
    singles = np.flatnonzero(dataset.table.order == 1)
    out = np.zeros(len(dataset.organism.genes), bool)
    out[dataset.table.gene[dataset.table.offsets[singles[~np.isin(singles, split.train)]]]] = True
    return out
