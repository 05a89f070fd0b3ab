"""`Predictor`: a trained model that predicts by gene name. The facade of everything in this room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, GeneSetError
from wildtype.evaluation.conformal import Conformal
from wildtype.inference.core import Floats, Kinds, PredictionCore, Source, core_of
from wildtype.inference.prediction_table import prediction_table
from wildtype.inference.sets import GeneSets, beside_given, written
from wildtype.inference.wild_type import wild_type_value
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import MutantTable
from wildtype.tables import facts_html

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.organism import GeneIndex, Organism


NAMED = 4
"""Most phenotypes that the text of a predictor names."""


class Predictor:
    """Predicts phenotypes of named gene sets, with what is known about the reliability of each prediction.

    There are four ways in: ``predict`` (sets of genes), ``predict_table`` (a table of mutants),
    ``predict_profiles`` (a value per gene of the cell) and ``predict_with_sd`` (numbers only).

    Parameters
    ----------
    checkpoint : Checkpoint or PredictionCore
        A trained model with the measurements that were known when it was trained, or its core.
    """

    def __init__(self, checkpoint: Checkpoint | PredictionCore) -> None:
        self.core = core_of(checkpoint) if isinstance(checkpoint, Checkpoint) else checkpoint

    def __repr__(self) -> str:
        origin = self.checkpoint.origin.get("dataset", "unknown data")
        return f"Predictor({self._named()} of {self.genes.organism}, trained on {origin})"

    def _repr_html_(self) -> str:
        origin = self.checkpoint.origin.get("dataset", "unknown data")
        facts: list[tuple[str, object]] = [
            ("model", self.checkpoint.model.config.name),
            ("predicts", self._named()),
            ("organism", f"{self.genes.organism}, {len(self.genes):,} genes"),
            ("trained on", f"{origin}, {len(self.trained):,} rows"),
            *(("remark", remark) for remark in self.remarks),
        ]
        return facts_html("Predictor", facts)

    def _named(self) -> str:
        return ", ".join(self.phenotypes[:NAMED]) + (", …" if self.phenotypes[NAMED:] else "")

    @property
    def checkpoint(self) -> Checkpoint:
        """The trained model."""
        return self.core.checkpoint

    @property
    def source(self) -> Source | None:
        """Where another process loads the same predictor from; None after `with_genes` or `on`."""
        return self.core.source

    @property
    def genes(self) -> GeneIndex:
        """The n genes that the model can be asked about, those that it was trained on first."""
        return self.core.genes

    @property
    def encoded(self) -> Predictor:
        """The predictor that knows the tokens of the model alone: genes that its encoder was trained on."""
        return self if self.core.encoded is self.core else Predictor(self.core.encoded)

    @property
    def phenotypes(self) -> list[str]:
        """Names of the phenotypes that the model predicts."""
        return self.core.phenotypes

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the predictions has to know, such as inputs that an organism lacks."""
        return self.core.remarks

    @property
    def conformal(self) -> Conformal:
        """Prediction intervals, calibrated on the validation rows of the run."""
        return self.core.conformal

    @property
    def kinds(self) -> Kinds:
        """Perturbation [n] assumed for each gene that is named without one: mostly that of training data."""
        return self.core.kinds

    @property
    def trained(self) -> MutantTable:
        """Rows that the model was trained on."""
        return self.core.trained

    @property
    def metabolic(self) -> NDArray[np.bool_]:
        """Genes of the organism's metabolism [n]; raises ``ConfigError`` where there is none."""
        return self.core.metabolic

    def table(self, sets: GeneSets, *, condition: str | None = None) -> MutantTable:
        """Return named sets as a table of this model's genes; ``predict`` lists the errors."""
        return self.core.table(sets, condition=condition)

    def condition(self, name: str | None) -> int:
        """Return the number of a condition; None is the reference. Raises ``ConfigError`` for others."""
        return self.core.condition(name)

    def with_genes(self, organism: Organism) -> Predictor:
        """Return a predictor that also knows the genes appended to an organism.

        It predicts mutants without any of these genes exactly as before, to the bit. ``organism`` is the one
        that the model was trained on, after ``add_gene``.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene, which a new one lacks (``model.table=false``).
        DatasetError
            If nothing is appended, or the organism lacks genes of the model.
        CheckpointError
            If the checkpoint does not name its feature columns.
        """
        from wildtype.inference.new_genes import with_appended

        return Predictor(with_appended(self.core, organism))

    def with_evidence(self, frame: pd.DataFrame) -> Predictor:
        """Return a predictor that also looks up a user's measurements, without training again.

        ``wildtype.inference.own_evidence.with_evidence`` describes the columns of ``frame`` and lists the
        errors. Intervals keep the calibration of the model without these measurements.
        """
        return Predictor(self.core.with_evidence(frame))

    def on(self, organism: Organism) -> Predictor:
        """Return the same model on another organism; see ``wildtype.inference.other_organisms``.

        ``remarks`` lists the inputs that the organism lacks.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene (``model.table=false``), or needs a relation that
            the organism lacks.
        CheckpointError
            If the checkpoint does not name its feature columns.
        """
        from wildtype.inference.other_organisms import on_organism

        checkpoint, remarks = on_organism(self.core.encoded.checkpoint, organism)
        core = PredictionCore(checkpoint)
        core.remarks += remarks
        return Predictor(core)

    def predict(
        self,
        sets: GeneSets,
        *,
        as_: Literal["phenotype", "fitness"] = "phenotype",
        condition: str | None = None,
        interval: float | None = None,
    ) -> pd.DataFrame:
        """Predict every phenotype of every set.

        Parameters
        ----------
        sets : sequence of sequences of str, or table
            Genes by any of their names, none for the wild type; ``gene:kind`` names a perturbation
            (``absent``, ``reduced``, ``present``, ``added``, ``overexpressed``; without one, the most
            frequent in the training data), and ``gene:kind@dose`` its dose, too (without one, the middle one
            of the training rows of its kind, if all of these have a dose). A table has a column
            ``genes`` of texts (``SGS1,SRS2``) or lists; such a column alone, or an array [m, k] of names,
            will do, too. Further columns of a table state something of its rows, where a cell is not empty:
            ``kind`` or ``kinds`` (one for all genes, or one each, separated by commas or semicolons),
            ``dose`` or ``doses`` (one for each gene), and ``condition``.
        as_ : str
            ``fitness`` adds ``fitness_expected`` and ``fitness_expected_sd``, from predicted epsilon or tau
            and known fitness of the single (and double) mutants, of the same kinds and condition.
        condition : str, optional
            One of the dataset's conditions, for rows that state none; the reference by default.
        interval : float, optional
            Coverage of prediction intervals, such as 0.9; ``evaluation.conformal`` describes their guarantee.

        Returns
        -------
        pandas.DataFrame
            One row per set, in order: ``genes`` (systematic names), ``names`` (standard names, semicolons
            between), ``kinds``, ``doses`` and ``condition`` (of models that know doses, and several
            conditions), one column per phenotype in its unit (NaN where it is not defined, see ``note``),
            ``<phenotype>_unlisted`` (of models of a whole screen: the value, given that the pair was screened
            and not listed, `mutants.unlisted`), ``<phenotype>_measured`` (the known value of the same genes,
            kinds and condition, a mean over alleles; NaN if there is none), ``screened`` (``listed``,
            ``screened, not listed``, ``unknown`` or ``not crossed``, where the model knows the grid of a
            screen), ``order``, ``order_seen`` and ``genes_seen`` (in training rows), ``essential`` (essential
            genes of the set), ``note``. With ``interval``, behind each phenotype ``<phenotype>_low`` and
            ``_high`` (NaN where validation rows like the query are missing or too few, see ``note``; none of
            classes) and ``_sd``, over the members of an ensemble or of a Gaussian process (NaN of other
            models). A table keeps its index, and its columns come first, in their order; one that the
            prediction has, too, is renamed to ``…_given``. A table of predictions predicts the same again.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the first ten rows that do not fit, and counting up to 100: also rows that state two kinds
            of a gene, or a dose where no mutant of the training data has one.
        ConfigError
            If a kind or condition is not known, a row states another condition than ``condition``, a coverage
            is not between 0 and 1, or ``as_="fitness"`` does not apply to the phenotypes of the model.
        CheckpointError
            If intervals are requested of a checkpoint without its validation rows.
        """
        frame = self.predict_table(self.table(sets, condition=condition), as_=as_, interval=interval)
        return beside_given(sets, frame)

    def predict_table(
        self, table: MutantTable, *, as_: str = "phenotype", interval: float | None = None
    ) -> pd.DataFrame:
        """Predict the rows of a table of this model's genes; columns as in ``predict``."""
        return prediction_table(self.core, table, as_=as_, interval=interval)

    def predict_profiles(
        self, sets: GeneSets, phenotype: str = "", *, condition: str | None = None
    ) -> pd.DataFrame:
        """Predict a per-gene phenotype, such as expression: one row per set, one column per gene of the cell.

        Parameters
        ----------
        sets, condition
            As for ``predict``.
        phenotype : str
            Its name; optional if the model predicts only one per-gene phenotype.

        Returns
        -------
        pandas.DataFrame
            ``genes`` (the perturbed ones), then one float32 column per gene of the index, in its order.

        Raises
        ------
        ConfigError
            If the model has no such phenotype, or several and none is named.
        """
        import pandas as pd

        outputs = self.checkpoint.outputs
        per_gene = [p for p, output in enumerate(outputs) if output.form == "gene"]
        chosen = [p for p in per_gene if phenotype in ("", outputs[p].name)]
        if len(chosen) != 1:
            known = ", ".join(outputs[p].name for p in per_gene) or "none"
            raise ConfigError(
                f"genes={phenotype!r}: name one phenotype with a number per gene; known: {known}"
            )
        table, names = self.table(sets, condition=condition), self.genes.names
        profiles = self.core.profiles(table, chosen[0])
        defined = wild_type_value(self.checkpoint.phenotypes[chosen[0]])
        if defined is not None:
            profiles[table.order == 0] = np.nan if isinstance(defined, str) else defined
        frame = pd.DataFrame(profiles, columns=list(names))
        frame.insert(0, "genes", written(table, names)[0])
        return frame

    def embed(
        self, sets: GeneSets, *, latent: str = "", member: int = 1, condition: str | None = None
    ) -> pd.DataFrame:
        """Return the latents of mutants: ``genes``, ``kinds``, and columns ``<latent>.0``, … (float64).

        Parameters
        ----------
        sets, condition
            As for ``predict``.
        latent : str
            Only this one, such as ``z_S``, ``summary`` or ``h_CLS``.
        member : int
            Which model of an ensemble, from 1.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the rows that do not fit.
        ConfigError
            If the model has no latents, or none of that name, or there is no such member or condition.
        """
        from wildtype.inference.embed import Embedding

        embedding = Embedding(self.core, member=member, condition=condition)
        return embedding.frame(self.core.encoded.table(sets, condition=condition), latent=latent)

    def gene_embeddings(self, *, member: int = 1) -> pd.DataFrame:
        """Return the wild type as the model encodes it: one row per gene, one column per dimension.

        Raises
        ------
        ConfigError
            If the model has no latents, or there is no such member.
        """
        from wildtype.inference.embed import Embedding

        return Embedding(self.core, member=member).genes()

    def attention(
        self, layer: int = 0, head: int = 0, *, genes: Sequence[str] | None = None, member: int = 1
    ) -> pd.DataFrame:
        """Return how much each gene of the encoded wild type attends to each gene, in one attention head.

        Parameters
        ----------
        layer, head : int
            Of the encoder, from 0, as ``wildtype explain`` counts them.
        genes : sequence of str, optional
            Rows of these genes only, by any of their names, in this order; by default all n genes.
        member : int
            Which model of an ensemble, from 1.

        Returns
        -------
        pandas.DataFrame
            float32 [n, n] (or [r, n] for r named genes), with systematic names: row i, column j is the
            attention of gene i to gene j. Each row sums to 1 over the genes; the token CLS, which stands for
            the whole cell, is left out.

        Raises
        ------
        ConfigError
            If the model has no attention between genes (no encoder layers, or another kind of model), or
            there is no such layer, head or member.
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the gene.
        """
        import pandas as pd

        from wildtype.inference.explaining.attention import attention_rows
        from wildtype.models.ensemble import member_of

        core = self.core.encoded
        model = member_of(core.checkpoint.model, member)
        if isinstance(genes, str):
            raise GeneSetError(f"genes={genes!r} is one text: give a list of genes, such as [{genes!r}]")
        rows = (
            np.arange(len(core.genes)) if genes is None else np.array([core.find(g) for g in genes], np.int64)
        )
        names = np.array(core.genes.names, object)
        weights = attention_rows(model, core.checkpoint.organism, rows, layer, head)
        return pd.DataFrame(weights, index=pd.Index(names[rows], name="gene"), columns=names)

    def predict_with_sd(self, table: MutantTable) -> tuple[Floats, Floats]:
        """Return every phenotype [m, p] of a table's m rows and its sd over members [m, p], in its unit.

        The sd is NaN where there is one member that has none of its own.
        """
        return self.core.predict_with_sd(table)

    def screen(
        self,
        order: int | None = None,
        among: Sequence[str] | None = None,
        *,
        queries: Sequence[Sequence[str]] | None = None,
        top: int = 100,
        direction: Literal["low", "high", "both"] = "both",
        phenotypes: Sequence[str] | None = None,
        condition: str | None = None,
        interval: float | None = None,
        exclude: Sequence[str] = (),
        exclude_essential: bool = False,
        require: Sequence[str] = (),
        unmeasured: bool = False,
        exclude_synthetic_lethal: bool = False,
        include: Sequence[str] = (),
        min_linkage_kb: float | None = None,
        max_per_gene: int | None = None,
        rank: Literal["prediction", "interaction"] = "prediction",
        choose: Literal["best", "explore", "diverse"] = "best",
        device: str = "cpu",
        processes: int = 1,
        state: str | Path | None = None,
        report_progress: Callable[[int, int], None] | None = None,
    ) -> pd.DataFrame:
        """Predict every mutant of a design, and return the mutants with the lowest and highest predictions.

        The result is exact. Mutants are predicted in pieces of a fixed size, so that memory does not grow
        with the design.

        Parameters
        ----------
        order : int, optional
            Genes per mutant: the design is all sets of so many candidates; 2 by default.
        among : sequence of str, optional
            Candidates, as ``gene`` or ``gene:kind``; by default every gene of the model.
        queries : sequence of sequences of str, optional
            Cross each of these sets with every candidate instead. They are written as for ``predict``.
        top : int
            Mutants to return, for each phenotype and direction.
        direction : str
            ``low``, ``high`` or ``both``.
        phenotypes : sequence of str, optional
            Phenotypes to rank by; by default all but per-gene ones.
        condition : str, optional
            One of the dataset's conditions; the reference by default.
        interval : float, optional
            Coverage of prediction intervals, as in ``predict``.
        exclude : sequence of str
            Genes that are no candidates.
        exclude_essential : bool
            Whether essential genes are no candidates in any form, knock-downs included.
        require : sequence of str
            Each mutant has at least one of these genes; ``metabolic`` names all genes of the metabolism.
        unmeasured : bool
            Whether to leave out mutants (genes and kinds of perturbation) with a measurement of a phenotype
            to rank by in the condition; of a whole screen also crosses that were screened and not listed.
        exclude_synthetic_lethal : bool
            Whether to leave out mutants with a synthetic lethal pair: its fitness, measured in the condition
            or implied by its epsilon there, is below 0.1, while both single mutants are viable.
        include : sequence of str
            What to keep of the mutants that a screen leaves out: ``lethal`` (an essential gene is absent),
            ``linked`` (two genes within ``min_linkage_kb`` on one chromosome, which a cross rarely combines),
            ``overlapping`` (a gene shares bases with another) and ``dubious`` (an ORF that is unlikely to
            encode a protein). ``attrs["unchecked"]`` names those that the model does not know.
        min_linkage_kb : float, optional
            Distance (kb) within which two genes are linked, 200 by default. Genes without a known place are
            not.
        max_per_gene : int, optional
            Most rows of a list that a candidate may be in. A list is chosen from the best ``50 top`` mutants;
            ``attrs["short"]`` names the lists for which these were too few.
        rank : str
            ``prediction``, or ``interaction``: the prediction minus the product of the predictions of the
            single mutants, for phenotypes of which the wild type has 1, such as fitness.
        choose : str
            ``best``; ``diverse``, in which every row that a gene has halves the strength of its further
            mutants; or ``explore``, ranked by the extreme end of the interval (of ``interval``, else 0.9),
            and calls by how close they are to one half. The last two choose from the best ``50 top`` mutants
            (`inference.screening.choosing`).
        device : str
            ``cpu``, or ``cuda`` or ``cuda:1``, where a model that reads no evidence predicts large screens
            faster, up to rounding.
        processes : int
            Number of processes, each of which loads the model from its folder: one after `with_genes` or
            `on`. The result does not depend on it.
        state : path, optional
            File that keeps intermediate results, so that a killed screen continues from there.
        report_progress : callable, optional
            Called with the number of mutants done and in all, before the first piece and after every one.

        Returns
        -------
        pandas.DataFrame
            Rows by phenotype, direction and rank: ``phenotype``, ``direction``, ``rank``, the columns of
            ``predict``, ``single_fitness`` and ``linkage_kb``; by interaction also ``expected``, the product
            of the single mutants, and ``interaction``. ``attrs`` holds ``count`` (of the design),
            ``asked`` (mutants predicted), ``left_out`` (by reason), and ``expected_hits`` in the list of each
            class ``negative`` or ``positive``: the sum of its probabilities.

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the candidate or query.
        ConfigError
            If an option is out of range, the design has no mutant, a phenotype is not defined for its order,
            places or the metabolism are needed and not known, the device is not there or does not predict
            this screen, or the state is that of another screen.
        OutputError
            If the state cannot be written.
        """
        from wildtype.inference.screening.screen import ScreenRequest, screen_mutants

        request = ScreenRequest(
            order=order,
            among=among,
            queries=queries,
            top=top,
            direction=direction,
            phenotypes=phenotypes,
            condition=condition,
            exclude=exclude,
            exclude_essential=exclude_essential,
            require=require,
            unmeasured=unmeasured,
            exclude_synthetic_lethal=exclude_synthetic_lethal,
            include=include,
            min_linkage_kb=min_linkage_kb,
            max_per_gene=max_per_gene,
            interval=interval,
            rank=rank,
            choose=choose,
            device=device,
        )
        return screen_mutants(
            self.core,
            request,
            processes=processes,
            state=None if state is None else Path(state),
            report_progress=report_progress or (lambda done, count: None),
        )


def load(path: str | Path) -> Predictor:
    """Load the predictor of a run or checkpoint directory.

    Raises
    ------
    CheckpointError
        If it is missing, damaged, or of an unknown format.
    """
    return Predictor(Source(Path(path)).load())
