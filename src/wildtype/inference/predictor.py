"""`Predictor`: a trained model that answers by gene name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.evaluation.conformal import Conformal, check_level
from wildtype.evidence.reference import PARTS
from wildtype.inference.frames import predicted_frame
from wildtype.inference.sets import default_kinds, to_table
from wildtype.models.checkpoint import Checkpoint, load_checkpoint
from wildtype.mutants import MutantTable

if TYPE_CHECKING:
    import pandas as pd

    from wildtype.models.interface import WildType
    from wildtype.organism import Organism


class Predictor:
    """Predicts phenotypes of named gene sets, and says how far to trust each prediction.

    Parameters
    ----------
    checkpoint : Checkpoint
        A trained model with what was known when it was trained.

    Attributes
    ----------
    source : Source or None
        Where another process gets the same predictor from; None if it was changed since it was loaded.
    remarks : tuple of str
        What to know of its answers: inputs that an organism which the model was not trained on lacks.
    """

    def __init__(self, checkpoint: Checkpoint, source: Source | None = None) -> None:
        self.checkpoint = checkpoint
        self.source = source
        self.genes = checkpoint.genes
        self.phenotypes = [p["name"] for p in checkpoint.phenotypes]
        self.remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        origin = self.checkpoint.origin.get("dataset", "unknown data")
        return f"Predictor({', '.join(self.phenotypes)} of {self.genes.organism}, trained on {origin})"

    @cached_property
    def _wild_type(self) -> WildType:
        return self.checkpoint.encode()

    @cached_property
    def conformal(self) -> Conformal:
        """What intervals are made of."""
        return Conformal(self.checkpoint)

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """What is taken to be done to each gene [n] where nothing is said: mostly what training data did."""
        known = self.checkpoint.known
        return default_kinds(known.table, len(self.genes), known.essential)

    @cached_property
    def trained(self) -> MutantTable:
        """Rows that the model was trained on."""
        known = self.checkpoint.known
        return known.table.take(known.part == PARTS.index("train"))

    def with_genes(self, organism: Organism) -> Predictor:
        """Return a predictor that also knows the genes appended to an organism.

        Mutants without any of them are answered by this predictor, to the bit. ``organism`` is the one that
        the model was trained on, after ``add_gene``.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene, which a new one lacks (``model.table=false``).
        DatasetError
            If nothing is appended, or the organism lacks genes of the model.
        CheckpointError
            If the checkpoint was written before names of feature columns were kept.
        """
        from wildtype.inference.new_genes import ExtendedPredictor

        return ExtendedPredictor(self, organism)

    def with_evidence(self, frame: pd.DataFrame) -> Predictor:
        """Return a predictor that also looks up a user's own measurements, without training again.

        ``frame`` has the columns that `wildtype.inference.own_evidence.with_evidence` names, which says what
        it raises. Intervals stay those of the model before.
        """
        from wildtype.inference.own_evidence import with_evidence

        other = copy(self)
        for name in ("_wild_type", "conformal", "kinds", "trained"):
            other.__dict__.pop(name, None)
        other.checkpoint = with_evidence(self.checkpoint, frame, self.kinds)
        other.source = None if self.source is None else self.source.and_evidence(frame)
        return other

    def on(self, organism: Organism) -> Predictor:
        """Return the same model on another organism; see ``wildtype.inference.other_organisms``.

        ``remarks`` says which of its inputs the organism does not have.

        Raises
        ------
        ConfigError
            If the model has a learned embedding per gene (``model.table=false``), or needs a relation that
            the organism lacks.
        CheckpointError
            If the checkpoint was written before names of feature columns were kept.
        """
        from wildtype.inference.other_organisms import on_organism

        checkpoint, remarks = on_organism(self.checkpoint, organism)
        other = Predictor(checkpoint)
        other.remarks = remarks
        return other

    def table(self, sets: Sequence[Sequence[str]], *, condition: str | None = None) -> MutantTable:
        """Turn named sets into a table of this model's genes; see ``predict`` for the errors."""
        table = to_table(sets, self.genes, self.kinds)
        table.condition[:] = self.condition(condition)
        return table

    def condition(self, name: str | None) -> int:
        """Return the number of a condition; None is the reference. Raises ``ConfigError`` for others."""
        names = self.checkpoint.conditions
        if name is not None and name not in names:
            raise ConfigError(f"the model knows no condition {name!r}; it knows {', '.join(names)}")
        return 0 if name is None else names.index(name)

    @property
    def metabolic(self) -> NDArray[np.bool_]:
        """Genes of the organism's metabolism [n]; raises ``ConfigError`` where there is none."""
        metabolic = self.checkpoint.known.metabolic
        if metabolic is None:
            raise ConfigError(
                f"no metabolism of {self.genes.organism} is known to this model: name the required genes, or "
                f"build the organism with its metabolic model and train again with this version"
            )
        return metabolic

    def predict(
        self,
        sets: Sequence[Sequence[str]],
        *,
        as_: Literal["phenotype", "fitness"] = "phenotype",
        condition: str | None = None,
        interval: float | None = None,
    ) -> pd.DataFrame:
        """Predict every phenotype of every set.

        Parameters
        ----------
        sets : sequence of sequences of str
            Genes by any of their names; ``gene:kind`` says what was done to one (``absent``, ``reduced``,
            ``present``, ``added``, ``overexpressed``; by default what training data did to it).
        as_ : str
            ``fitness`` adds the expected fitness and its sd, from predicted epsilon or tau and known fitness
            of the singles (and pairs).
        condition : str, optional
            One of the dataset's conditions; the reference by default.
        interval : float, optional
            Coverage of intervals to give, as in 0.9; see ``evaluation.conformal`` for what it promises.

        Returns
        -------
        pandas.DataFrame
            One row per set, in order: ``genes`` (systematic names), ``kinds``, one column per phenotype in
            its unit (NaN where it is not defined, see ``note``), ``<phenotype>_measured`` (the known value;
            NaN if there is none), ``order``, ``order_seen`` and ``genes_seen`` (in training rows),
            ``essential`` (essential genes of the set), ``note``. With ``interval``, behind each phenotype
            ``<phenotype>_low`` and ``_high`` (NaN where validation rows like the query are missing or too
            few, see ``note``) and ``_sd`` over the members of an ensemble (NaN for a single model).

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the row.
        ConfigError
            On an unknown kind or condition, a coverage outside of 0 and 1, or where ``as_="fitness"`` does
            not apply.
        CheckpointError
            If intervals are asked of a checkpoint that was made without its validation rows.
        """
        return self.predict_table(self.table(sets, condition=condition), as_=as_, interval=interval)

    def predict_table(
        self, table: MutantTable, *, as_: str = "phenotype", interval: float | None = None
    ) -> pd.DataFrame:
        """Predict the rows of a table of this model's genes; columns as in ``predict``."""
        return predicted_frame(self, table, as_=as_, interval=interval)

    def predict_genes(
        self, sets: Sequence[Sequence[str]], phenotype: str = "", *, condition: str | None = None
    ) -> pd.DataFrame:
        """Predict a phenotype that has a number per gene: one row per set, one column per gene of the cell.

        Parameters
        ----------
        sets, condition
            As for ``predict``.
        phenotype : str
            Its name; may be left out where there is only one.

        Returns
        -------
        pandas.DataFrame
            ``genes`` (what is perturbed), then one float32 column per gene of the index, in its order.

        Raises
        ------
        ConfigError
            If the model has no such phenotype, or several and none is named.
        """
        import pandas as pd

        outputs = self.checkpoint.outputs
        having = [p for p, output in enumerate(outputs) if output.form == "gene"]
        chosen = [p for p in having if phenotype in ("", outputs[p].name)]
        if len(chosen) != 1:
            known = ", ".join(outputs[p].name for p in having) or "none"
            raise ConfigError(
                f"genes={phenotype!r}: name one phenotype with a number per gene; known: {known}"
            )
        table = self.table(sets, condition=condition)
        values = self._profiles(table, chosen[0])
        names = self.genes.names
        frame = pd.DataFrame(values, columns=list(names))
        texts = [",".join(names[g] for g in perturbed) for perturbed in table.sets()]
        frame.insert(0, "genes", texts)
        return frame

    def _profiles(self, table: MutantTable, phenotype: int) -> NDArray[np.float32]:
        """Return a phenotype's number for every gene [M, n]."""
        return self.checkpoint.predict_profiles(table, phenotype, self._wild_type)

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
        viable: bool = False,
        require: Sequence[str] = (),
        unmeasured: bool = False,
        no_lethal: bool = False,
        linked: float = 0.0,
        at_most: int | None = None,
        processes: int = 1,
        state: str | Path | None = None,
        report_progress: Callable[[int, int], None] | None = None,
    ) -> pd.DataFrame:
        """Ask about every mutant of a design, and return the best of them.

        Every mutant passes the model, in pieces of a fixed size: memory does not grow with the design.

        Parameters
        ----------
        order : int, optional
            Genes per mutant: all sets of so many candidates; 2 if it is not said.
        among : sequence of str, optional
            Candidates, as ``gene`` or ``gene:kind``; by default every gene of the model.
        queries : sequence of sequences of str, optional
            Cross each of these sets with every candidate instead; a query counts as in ``predict``.
        top : int
            Mutants to return, for each phenotype and direction.
        direction : str
            ``low``, ``high`` or ``both``.
        phenotypes : sequence of str, optional
            To rank by; by default all that are one number.
        condition : str, optional
            One of the dataset's conditions; the reference by default.
        interval : float, optional
            Coverage of intervals to give, as in ``predict``.
        exclude : sequence of str
            Genes that are no candidates.
        viable : bool
            Whether essential genes are no candidates.
        require : sequence of str
            A mutant has at least one of these genes; ``metabolic`` stands for those of the metabolism.
        unmeasured : bool
            Whether gene sets with a measurement of a phenotype to rank by are left out.
        no_lethal : bool
            Whether mutants are left out that hold a pair whose fitness, measured or implied by its epsilon,
            is below 0.1 while both genes live alone.
        linked : float
            Leave out mutants of which two genes lie within so many kb on one chromosome, which a cross
            hardly brings together; 0: no matter. Genes without a known place stay.
        at_most : int, optional
            No candidate stands in more rows of a list than that. Of every list the best ``50 top`` are
            looked through; ``attrs["short"]`` names the lists that were too short for ``top`` rows.
        processes : int
            Beside each other. The answer does not depend on it.
        state : path, optional
            File in which what was found is kept, so that a killed screen goes on from there.
        report_progress : callable, optional
            Is given how many mutants of the design are done, and how many there are: before the first piece,
            and after every one.

        Returns
        -------
        pandas.DataFrame
            Rows by phenotype, direction and rank: ``phenotype``, ``direction``, ``rank``, the columns of
            ``predict``, ``single_fitness`` and ``linkage_kb``. ``attrs`` holds ``count`` (of the design),
            ``asked`` and ``left_out`` (by reason).

        Raises
        ------
        UnknownGeneError, AmbiguousGeneError, GeneSetError
            Naming the candidate or query.
        ConfigError
            If a setting is not known, no mutant is in the design, a phenotype is not defined for its order,
            places or the metabolism are asked for and not known, or the state is not this screen's.
        OutputError
            If the state cannot be written.
        """
        from wildtype.inference.screening.request import ScreenRequest, make_screen
        from wildtype.inference.screening.shortlist import shortlist
        from wildtype.inference.screening.stream import run

        if interval is not None:
            check_level(interval)
        wish = ScreenRequest(
            order,
            among,
            queries,
            top,
            direction,
            phenotypes,
            condition,
            exclude,
            viable,
            require,
            unmeasured,
            no_lethal,
            linked,
            at_most,
        )
        screen, exempt = make_screen(self, wish)
        count = screen.design.count

        def done(pieces: int) -> None:
            if report_progress is not None:
                report_progress(min(pieces * screen.piece, count), count)

        done(0)
        found = run(
            self,
            screen,
            processes=processes,
            state=None if state is None else Path(state),
            report_progress=lambda outcome: done(outcome.done),
        )
        return shortlist(self, screen, found, top, interval=interval, at_most=at_most, exempt=exempt)

    def predict_values(self, table: MutantTable) -> NDArray[np.float64]:
        """Predict every phenotype of the rows of a table of this model's genes [M, p], and nothing else."""
        return self.predict_with_sd(table)[0]

    def combinations(
        self, gene: NDArray[np.int64], kind: NDArray[np.uint8], order: int, condition: int = 0
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
        """Return what predicts sets [M, order] of c members, [M, p] as ``predict_values`` does but faster.

        Members are ``gene`` [c] with ``kind`` [c]; None where the model knows no faster way.
        """
        return self.checkpoint.combinations(gene, kind, order, condition, self._wild_type)

    def predict_with_sd(self, table: MutantTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return every phenotype of the rows of a table and its sd over members [M, p]."""
        return self.checkpoint.predict_with_sd(table, self._wild_type)


def load(path: str | Path) -> Predictor:
    """Load the predictor of a run or checkpoint folder.

    Raises
    ------
    CheckpointError
        If it is missing, damaged, or of an unknown format.
    """
    return Source(Path(path)).load()


@dataclass(frozen=True, eq=False)
class Source:
    """Where a predictor comes from: a folder, and the own measurements it was given."""

    path: Path
    evidence: tuple[pd.DataFrame, ...] = ()

    def and_evidence(self, frame: pd.DataFrame) -> Source:
        """Return the source of a predictor that was given further measurements."""
        return Source(self.path, (*self.evidence, frame))

    def load(self) -> Predictor:
        """Return the predictor."""
        predictor = Predictor(load_checkpoint(self.path), Source(self.path))
        for frame in self.evidence:
            predictor = predictor.with_evidence(frame)
        return predictor
