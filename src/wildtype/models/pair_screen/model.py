"""`PairScreen`: E[ε], the chance of a listed interaction, and E[ε | listed], of any pair of genes.

Columns of `wildtype.evidence.pair_columns` describe a pair by all visible crosses of the screen, and a forest
for each output answers: one for pairs of two seen genes, one for pairs with one unseen gene, and one
for pairs of two unseen genes. Each is the mean of trees that may ask for every column and of trees that read
closed forms of the whole screen alone. Of a map, in which every known pair was measured, answers are the mean
of that forest and a weighted sum of columns, and for unseen genes the sum alone. A map of few pairs is
answered by a sum, with weights of at least 0, of what other screens say, unless more columns clearly err less
on left-out pairs. Nothing but the kernel of genes is trained by gradients.

Legend: b mutants · u distinct pairs · f columns · p outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wildtype.errors import ConfigError
from wildtype.evidence.column_families import closed_forms, not_of, of_screens, rising, stand_ins
from wildtype.evidence.other_screens import OtherScreen
from wildtype.evidence.pair_index import PairIndex
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.reference import ReferenceMeasurements
from wildtype.evidence.similarity import GeneSimilarity
from wildtype.models.described_pairs import (
    UNSEEN,
    DescribedPairs,
    KernelWeights,
    PairRows,
    described,
    weighted_sum,
)
from wildtype.models.interface import (
    Model,
    ModelInputs,
    OrganismTensors,
    Output,
    Prediction,
    RunRows,
    WildType,
)
from wildtype.models.linear_columns import LinearColumns
from wildtype.models.monotone_trees import BinnedColumns, TreeSettings
from wildtype.models.pair_screen.config import PairScreenConfig
from wildtype.mutants.batch import MutantBatch
from wildtype.mutants.loader import Batches
from wildtype.nn.forest import Forest, ForestSums
from wildtype.nn.threads import each
from wildtype.seeds import derive

LEAST_LEAVES = 7
LISTED_ROWS_PER_LEAF = 1_000
"""Training rows for each leaf of a tree of listed values."""
LISTED_FEW = 20_000
"""Listed rows below which thresholds are drawn."""


class PairScreen(Model):
    """Forests over the columns of a pair.

    Parameters
    ----------
    config : PairScreenConfig
    outputs : sequence of Output
        First the one that is measured (``of_cross`` is "effect" or empty), then others of the same crosses.

    Raises
    ------
    ConfigError
        If there is not one measured output, or it is not the first.
    """

    needs = ("similarity",)
    least_perturbed = most_perturbed = 2
    gradients = False

    def __init__(self, config: PairScreenConfig, outputs: Sequence[Output]) -> None:
        super().__init__()
        self.config, self.outputs = config, tuple(outputs)
        measured = [output.name for output in outputs if output.of_cross in ("", "effect")]
        if len(measured) != 1:
            raise ConfigError(
                f"model pair_screen predicts one measured phenotype of pairs, received "
                f"{', '.join(measured) or 'none'}: name one in data.phenotypes"
            )
        if outputs[0].name != measured[0]:
            # `pair_index` and `looked_up` are given names alone: the first is the one that users may measure.
            raise ConfigError(
                f"model pair_screen describes pairs by {measured[0]}: name it first in data.phenotypes"
            )
        self.forests = nn.ModuleDict(
            {_name(i, unseen): Forest() for i in range(len(outputs)) for unseen in UNSEEN}
        )
        self.linear = nn.ModuleDict({str(unseen): LinearColumns() for unseen in UNSEEN})
        self.kernel = KernelWeights()
        self._together: dict[int, ForestSums] = {}

    @classmethod
    def build(cls, config: PairScreenConfig, inputs: ModelInputs) -> Self:
        """Return a model whose forests are empty."""
        return cls(config, inputs.outputs)

    def encode(self, organism: OrganismTensors, stream: torch.Generator | None = None) -> WildType:
        """Return a wild type without embeddings: columns hold what is known of genes."""
        return WildType(torch.zeros(1), torch.zeros(0, 1))

    def pair_index(
        self, organism: OrganismTensors, known: ReferenceMeasurements, outputs: Sequence[str]
    ) -> PairIndex | None:
        """Return where pairs are described: among the visible crosses of the screen."""
        assert organism.similarity is not None  # `needs` names it
        return self._index(known.pair_matrix(outputs[0]), organism.similarity, known.screens)

    def _index(
        self, matrix: PairMatrix, similarity: GeneSimilarity, screens: Sequence[OtherScreen]
    ) -> PairIndex:
        return PairIndex(matrix, similarity, self.config.folds, self.kernel.learned(), screens, each)

    def forward(self, wild_type: WildType, mutants: MutantBatch) -> Prediction:
        """Predict the outputs of a batch; NaN for mutants that are no pairs."""
        assert mutants.columns is not None
        assert mutants.unseen is not None
        mean = torch.full((len(mutants), len(self.outputs)), torch.nan)
        for unseen in UNSEEN:
            rows = torch.nonzero(mutants.unseen == unseen).reshape(-1)
            if not len(rows):
                continue
            mean[rows] = self._answers(unseen, mutants.columns[rows]).float()
        return Prediction(mean)

    def _answers(self, unseen: int, x: Tensor) -> Tensor:
        """Return every output [b, p] of pairs with so many unseen genes."""
        forests, linear = self._sums(unseen), self.linear[str(unseen)]
        assert isinstance(linear, LinearColumns)
        found = forests(x)
        if len(linear):
            # Of the measured output alone; where it has no trees, the weighted sum answers.
            said = linear(x).to(found)
            found[:, 0] = (found[:, 0] + said) / 2 if len(forests.forests[0]) else said
        return found

    def _sums(self, unseen: int) -> ForestSums:
        forests = [self.forests[_name(i, unseen)] for i in range(len(self.outputs))]
        made = self._together.get(unseen)
        # Fitting replaces forests; those that are the same keep what was made of their trees.
        if made is None or any(a is not b for a, b in zip(made.forests, forests, strict=True)):
            made = self._together[unseen] = ForestSums([f for f in forests if isinstance(f, Forest)])
        return made

    @property
    def has_post_fit(self) -> bool:
        """Always: forests are all there is."""
        return True

    def post_fit(self, train: Batches, validation: Batches, rows: RunRows) -> str:
        """Fit the forests to training pairs, each described without its own cross."""
        similarity = rows.organism.similarity
        assert similarity is not None
        matrix, config = rows.known.pair_matrix(rows.outputs[0]), self.config
        self.kernel = KernelWeights.of_screens(similarity, matrix, rows.known.screens)
        index = self._index(matrix, similarity, rows.known.screens)
        learn = PairRows.of(rows.train, config.name)
        counts = []
        # Listed pairs are few: all are described with one unseen gene, and then stand for fewer than others.
        share = np.where(self._listed(learn), 1.0, config.one_unseen)
        folds = {"gene_folds": config.gene_folds, "both_folds": config.both_folds}
        for unseen, found in described(index, learn.pairs, rows.seed, share=share, **folds):
            counts.append(f"{len(found.pair):,} with {unseen} unseen")
            if not matrix.of_grid:
                self._fit_linear(unseen, found, index.names, learn, rows)
                if not unseen and self._left_to_screens(found, index.names, learn, rows):
                    return f"{len(found.pair):,} pairs weigh what other screens say: too few for more"
                if unseen:
                    continue  # trees are worse than sums there: they learn from few and noisy columns
            read = not_of(config.without, index.names)
            sets = [np.flatnonzero(read), np.flatnonzero(read & closed_forms(index.names))]
            binned = BinnedColumns(found.columns, rising(index.names).astype(np.int64), sets)
            for i, output in enumerate(self.outputs):
                self._fit(i, output, unseen, binned, found, learn, rows)
        return "forests learned from pairs: " + ", ".join(counts)

    def _listed(self, learn: PairRows) -> NDArray[np.bool_]:
        """Return which pairs [u] have a listed value."""
        listed = np.zeros(len(learn.pairs), bool)
        for i, output in enumerate(self.outputs):
            if output.of_cross == "listed":
                listed |= ~np.isnan(learn.labels(i)[0])
        return listed

    def _fit_linear(
        self, unseen: int, found: DescribedPairs, names: Sequence[str], learn: PairRows, rows: RunRows
    ) -> None:
        columns = (rising(names) | (np.array(names) == "additive")) & not_of(self.config.without, names)
        # Columns of unseen genes are few and noisy, and signs that follow the noise cost more there.
        self.linear[str(unseen)] = weighted_sum(
            0, columns, found, learn, rows, rising=unseen > 0, stand_in=stand_ins(names)
        )

    def _left_to_screens(
        self, found: DescribedPairs, names: Sequence[str], learn: PairRows, rows: RunRows
    ) -> bool:
        """Return whether own pairs are too few to add to what other screens say, and then keep that alone.

        It holds for pairs of unseen genes, too: what another screen says does not depend on who is seen here.
        """
        # All screens as one matrix are in the unit of own pairs, of which too few are to say what it is.
        without = {*self.config.without, "pooled"}
        columns = rising(names) & of_screens(names) & not_of(without, names)
        stand_in = stand_ins(names)
        whole, alone = self.linear["0"], weighted_sum(0, columns, found, learn, rows, stand_in=stand_in)
        assert isinstance(whole, LinearColumns)
        if not len(alone.left_out) or whole.clearly_better(alone):
            return False
        # Few rows would give one of several alike columns a weight below 0.
        kept = weighted_sum(0, columns, found, learn, rows, rising=True, stand_in=stand_in)
        if not kept.weight.any():  # the other screens say nothing of these pairs
            return False
        self.linear = nn.ModuleDict({str(unseen): deepcopy(kept) for unseen in UNSEEN})
        return True

    def _fit(
        self,
        i: int,
        output: Output,
        unseen: int,
        binned: BinnedColumns,
        found: DescribedPairs,
        learn: PairRows,
        rows: RunRows,
    ) -> None:
        label, weight = learn.labels(i)
        place = np.flatnonzero(~np.isnan(label[found.pair]))
        pair = found.pair[place]
        if not len(pair):
            return
        value = (label[pair] - rows.mean[i]) / rows.sd[i]
        listed = output.of_cross == "listed"
        # The more negative a pair is expected to be, the likelier is a negative interaction. How strong one
        # is that is listed need not rise with what is expected of any.
        bound = 0 if listed else -1 if output.of_cross == "negative" else 1
        self.forests[_name(i, unseen)] = binned.forest(
            place,
            label[pair] if output.form == "class" else value,
            weight[pair] * found.weight[place],
            self._size(len(pair), unseen, listed=listed),
            # Closed forms know which pairs interact, but not how much those do that are listed.
            sets=(0,) if listed else (0, 1),
            bound=bound,
            calls=output.form == "class",
            bags=self.config.bags,
            seed=derive(rows.seed, "pair screen", len(UNSEEN) * i + unseen),
        )

    def _size(self, rows: int, unseen: int, *, listed: bool) -> TreeSettings:
        """Return the size of a forest that learns from so many rows of pairs with so many unseen genes."""
        config = self.config
        size = TreeSettings(config.iterations, config.learning_rate, config.leaves, config.least_rows)
        if not listed and unseen < 2:
            return size
        size = replace(size, learning_rate=config.learning_rate / 2)
        if not listed:
            # What is known of two unseen genes is little and noisy.
            return replace(size, leaves=min(config.leaves, max(config.leaves // 4, LEAST_LEAVES)))
        # A tenth of the rows, each of which says more: the more rows, the more leaves.
        return replace(
            size,
            iterations=config.iterations * 3 // 2,
            leaves=min(config.leaves, max(rows // LISTED_ROWS_PER_LEAF, LEAST_LEAVES)),
            drawn_thresholds=rows < LISTED_FEW,
        )

    @classmethod
    def check_new_genes(cls, config: Any, what: str, genes: int, *, appended: bool) -> None:
        """Refuse another organism's genes, none of which is in the screen that describes pairs."""
        if not appended:
            raise ConfigError(
                f"this {config.name} describes pairs by a screen of its {genes:,} genes and by their "
                f"similarity, which {what} are no part of: choose a model that knows genes by their features"
            )

    @classmethod
    def other_genes(cls, config: Any) -> str:
        """Return what it knows genes by that no cross of the screen has: a forest serves such pairs."""
        return "features and relations, as genes without a visible cross"

    @classmethod
    def reads_screens(cls, config: Any) -> bool:
        """Always: their values are columns."""
        return True

    @classmethod
    def reads_signs(cls, config: Any) -> bool:
        """Always: outputs rise where columns in units of the phenotype do."""
        return True

    @classmethod
    def left_out(cls, config: PairScreenConfig) -> list[str]:
        """Return the feature blocks that these settings leave out."""
        return config.leave_out

    @classmethod
    def looked_up(cls, config: Any, outputs: Sequence[str]) -> tuple[str, ...]:
        """Return the phenotype whose measurements describe pairs."""
        return (outputs[0],)

    @classmethod
    def evidence_line(cls, config: Any) -> str:
        """Return the model card's line about evidence."""
        return (
            "every visible cross of the screen, listed or not, but never that of the pair itself; where "
            "data.screens names other screens, what they measured, also of the pair itself."
        )


def _name(output: int, unseen: int) -> str:
    return f"{output}_{unseen}"
