"""`train`: from settings to a run folder.

    settings.json · split.json · card.json · record.json   what was done, with what, where
    checkpoint/                                             the model, ready to predict
    comparison.json · comparison.md                         the comparison table, one per phenotype
    across.json                                             the mean over phenotypes, where there are several
    predictions.parquet                                     test rows: measured, and predicted by every model
    external.parquet                                        the same of the datasets of ``data.also_test``
    campaign.json                                           hits found by batches, of a run on a grid
    vectors.csv                                             Pearson of every member of a vector
    estimate.json                                           what was predicted of time, memory and disk
    profile.json                                            where the time of its steps went
    logs/ · resume/                                         every step and epoch; where to continue
    traces/                                                 with training.trace_step
    snapshots/                                              weights of members, with training.snapshots
    member-2/ …                                             the same of the further members of an ensemble
    report.html                                             all of it as a page, written by the command

The folder takes its name before training starts, so that a killed run can be resumed; ``comparison.json`` is
written last and marks a finished run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
from lightning.pytorch.loggers import Logger
from numpy.typing import NDArray

from wildtype.datasets import Dataset
from wildtype.datasets.closed_forms import CLOSED_FORMS
from wildtype.errors import ConfigError
from wildtype.evaluation.over_phenotypes import by_member
from wildtype.experiments.baselines import baselines_of_run, predict_baseline, predict_closed_form
from wildtype.experiments.campaigns import replay_campaigns
from wildtype.experiments.closure import FITNESS, implied_tau
from wildtype.experiments.comparing import compare_across, compare_phenotypes, compare_profile_phenotypes
from wildtype.experiments.data import RunData, named_file, prepare
from wildtype.experiments.estimate import estimate_if_long, estimate_run, refuse, write_outcome
from wildtype.experiments.external import (
    compare_external,
    external_rows,
    not_listed,
    with_zero,
    write_external,
)
from wildtype.experiments.fitting import (
    fit_members,
    log_test_rows,
    make_checkpoint,
    post_fit,
    require_numbers,
    scored,
)
from wildtype.experiments.folder import (
    ACROSS,
    CAMPAIGN,
    DONE,
    EXTERNAL,
    MEMBERS,
    RECORD,
    claim,
    locked_run,
    recorded_threads,
    refuse_taken,
    resumable,
    settings_of,
)
from wildtype.experiments.record import environment, of_data
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.setup import build
from wildtype.experiments.stored import Run
from wildtype.files import content_hash, write_json, write_text, writing
from wildtype.inference.core import Source, core_of
from wildtype.inference.predictor import Predictor
from wildtype.models.baselines import BASELINES, make_baseline
from wildtype.models.checkpoint import Checkpoint
from wildtype.models.ensemble import Ensemble
from wildtype.models.interface import Model, OrganismTensors
from wildtype.models.registry import check, model_for_rows, require_gradients
from wildtype.mutants import MutantTable
from wildtype.profiling.machine import PeakMemory
from wildtype.report.comparison_tables import comparison_to_markdown
from wildtype.settings import check_settings
from wildtype.training.fit import accelerator
from wildtype.training.loggers import closing_logs
from wildtype.training.thread_count import threads_of_training
from wildtype.training.waiting import ADVICE, spinning
from wildtype.training.world import lost_processes, world

Log = Callable[[str], None]
SHOWN = 4
"""Most phenotypes that are named before a training begins."""
FEW_ROWS = 1_000
"""Of fewer training rows, a network is warned of."""


def train(config: TrainConfig, *, dataset: Dataset | None = None, log: Log = lambda text: None) -> Run:
    """Fit the model and every baseline on one split, compare them on the test rows, and save the run.

    Of several processes that torchrun started, the first writes the folder and does all but the network's
    training; the others return when that is done.

    Parameters
    ----------
    config : TrainConfig
        All settings.
    dataset : Dataset, optional
        Used instead of the one that the settings name.
    log : callable
        Receives one line per event.

    Raises
    ------
    ConfigError, DatasetError, SplitError, CheckpointError, OutputError
        If a setting, the dataset or the split is not usable, or the run directory cannot be written.
    ProcessLostError
        If another process of this run ended.
    """
    with lost_processes(), locked_run(config, log) as config, closing_logs([]) as loggers:
        return _train(config, dataset, log, loggers)


def _train(config: TrainConfig, dataset: Dataset | None, log: Log, loggers: list[Logger]) -> Run:
    check_settings(config)
    config.training.check()
    accelerator(config.training)  # a missing device must be an error before anything is written
    check(config.model)
    for asked, what in (
        (config.execution != "training", f"execution={config.execution}"),
        (config.training.snapshots > 0, f"training.snapshots={config.training.snapshots}"),
        (bool(config.training.start), "training.start"),
    ):
        if asked:
            require_gradients(config.model.name, what)
    if config.run.estimate and config.execution != "training":
        raise ConfigError(
            f"run.estimate=true is about whole training, which execution={config.execution} is not"
        )
    baselines = list(BASELINES) if config.baselines == ["all"] else config.baselines
    for name in baselines:
        if name not in CLOSED_FORMS:
            make_baseline(name)  # an unknown name must be an error before hours of training
    if config.model.name in baselines:
        raise ConfigError(
            f"model and baseline are both called {config.model.name!r}: they could not be told "
            f"apart in tables; leave one out, or rename the plug-in's"
        )
    if not config.run.resume and world().is_rank_zero:
        refuse_taken(config)  # before data are loaded and models built
    data = prepare(config, dataset)
    baselines = baselines_of_run(baselines, data, every=config.baselines == ["all"])
    estimate = estimate_run(config, data=data) if config.run.estimate else None
    if estimate is not None:
        log(f"estimate: {estimate.seconds_per_epoch:,.2f} s per epoch, {estimate.memory_mib:,.0f} MiB")
        refuse(estimate)
    model, tensors = build(config, data, config.seed, log)
    log(_plan_line(config, data, model, baselines))
    if estimate is None and (long := estimate_if_long(config, data)) is not None:
        log(
            f"training takes about {long.total_seconds:,.0f} s at most ({long.epochs} epochs of "
            f"{long.seconds_per_epoch:,.2f} s); trees, intervals and baselines come on top"
        )
        model, tensors = build(config, data, config.seed)  # its draws follow those of the estimate
    threads = _threads(config, model, tensors, log)
    fitted = replace(config, training=replace(config.training, threads=threads))
    fingerprint = content_hash(resumable(settings_of(config)), data.dataset.sha256, data.split.to_json())
    # All processes train the network together; only the first may claim and write the run directory.
    if not world().is_rank_zero:
        folder = Path(config.run.folder)
        fit_members(fitted, data, model, tensors, folder, fingerprint)
        return Run(folder)
    # After the models are built: their draws from torch's stream stay those of a run without external tests.
    outside = external_rows(data, log)
    folder = claim(config, fingerprint)
    write_json(folder / "card.json", data.whole.card())
    write_json(folder / "split.json", data.split.to_json())
    write_json(folder / RECORD, environment() | of_data(data) | {"threads": threads})
    log(_split_line(data))
    if _weights(model) and len(data.split.train) < FEW_ROWS:
        log(
            f"{len(data.split.train):,} training rows are few: a network may learn less from them than the "
            f"baselines of the table{_for_rows(len(data.dataset))}; a model of more rows can look yours up "
            f"without training (wildtype predict RUN --evidence FILE)"
        )
    for remark in data.dataset.selection_remarks():
        log(remark)
    for text in config.data.embeddings:
        log(f"embeddings {text}: {data.whole.organism.features[named_file(text)[0]].note}")
    for text in config.data.relations:
        name, _ = named_file(text)
        if name in data.whole.organism.graphs:  # data.graphs and data.without choose from these, too
            relation = data.whole.organism.graphs[name]
            left = ", ".join(f"{count:,} {reason}" for reason, count in relation.dropped.items()) or "none"
            log(f"relation {text}: {relation.edges:,} edges of genes of the run; rows not used: {left}")

    with PeakMemory() as memory:
        members, reports = fit_members(
            fitted, data, model, tensors, folder, fingerprint, loggers=loggers, log=log
        )
        if config.execution != "training":
            return Run(folder)
        start = time.perf_counter()
        post_fit(config, data, tensors, members, log)
        model = members[0] if len(members) == 1 else Ensemble(members).eval()
        checkpoint = make_checkpoint(config, data, model, tensors, reports)
        predicted = {config.model.name: checkpoint.predict_measured(data.part("test"))}
        require_numbers(checkpoint, data.part("test"), predicted[config.model.name])
        # Beside the test rows: external tests, and of a grid the validation rows, which calibrate campaigns.
        further = [rows.table for rows in outside]
        others = [{config.model.name: checkpoint.predict_measured(table)} for table in further]
        if data.grid is not None and checkpoint.validation is not None:
            further.append(data.part("validation"))
            others.append({config.model.name: checkpoint.validation.predicted})
    seconds = {config.model.name: sum(r.seconds for r in reports) + time.perf_counter() - start}
    peak = {config.model.name: memory.peak}
    for report in reports:
        # Resumed when there was nothing left to do, or fitted without gradients.
        if report.best_score is None or not report.mutants_per_second > 0:
            continue
        log(
            f"{config.model.name}: best validation r {report.best_score:.4f} at epoch {report.best_epoch} of "
            f"{report.epochs}, {report.mutants_per_second:,.0f} mutants/s, "
            f"{report.loading_share:.1%} of it loading"
        )
    for name in baselines:
        start = time.perf_counter()
        with PeakMemory() as memory:
            predicted[name], *values = (
                predict_closed_form(name, data, log, further)
                if name in CLOSED_FORMS
                else predict_baseline(name, data, config.seed, further)
            )
            for models, found in zip(others, values, strict=True):
                models[name] = found
        seconds[name], peak[name] = time.perf_counter() - start, memory.peak
        log(f"{name}: {seconds[name]:.1f} s")
    if reports[0].steps:
        tested = scored(checkpoint, data.part("test"), predicted[config.model.name])
        log_test_rows(loggers, folder, tested, reports[0])
    comparisons = compare_phenotypes(config, data, predicted, seconds, peak)
    comparisons |= compare_profile_phenotypes(config, data, checkpoint, seconds)
    comparisons |= implied_tau(
        data,
        predicted,
        {config.model.name: partial(_fitness, checkpoint)},
        baselines=[name for name in predicted if name != config.model.name],
        split=data.split.name,
        seconds=seconds,
        peak_mib=peak,
        replicates=config.run.replicates,
        seed=config.seed,
    )
    external = others[: len(outside)]
    of_others = [(rows, with_zero(rows, models)) for rows, models in zip(outside, external, strict=True)]
    told = [not_listed(rows, checkpoint, models) for rows, models in of_others]
    of_others += [part for part in told if part is not None]
    for rows, models in of_others:
        comparisons |= compare_external(config, data, rows, models, seconds, peak)
    checkpoint.metrics["test"] = {
        name: asdict(comparison[config.model.name]) for name, comparison in comparisons.items()
    }
    # Test metrics enter after every choice (epoch, mixing weights, intervals) was made on validation rows.
    checkpoint.save(folder / "checkpoint")
    _write_predictions(data, predicted, folder / "predictions.parquet")
    if outside:
        write_external(of_others, folder / EXTERNAL)
    if data.grid is not None:
        campaigns = replay_campaigns(data, predicted, others[-1], outside, external)
        write_json(folder / CAMPAIGN, [campaign.to_json() for campaign in campaigns])
        for line in (line for campaign in campaigns for line in campaign.lines()):
            log(line)
    grouped = [i for i, p in enumerate(data.dataset.phenotypes) if p.group]
    if grouped:
        with writing(folder / MEMBERS) as target:
            by_member(data.dataset, data.split.test, predicted, grouped).to_csv(target, index=False)
    across = (
        compare_across(config, data, predicted, seconds, peak, log)
        if len(data.dataset.phenotypes) > 1
        else None
    )
    if across is not None:
        write_json(folder / ACROSS, across.to_json())
    tables = [
        f"## {name}\n\n{comparison_to_markdown(comparison)}" for name, comparison in comparisons.items()
    ]
    if across is not None:
        tables.insert(0, f"## {across.phenotype}\n\n{comparison_to_markdown(across)}")
    write_text(folder / "comparison.md", "\n\n".join(tables) + "\n")
    if estimate is not None:
        errors = write_outcome(estimate, folder, reports, peak[config.model.name])
        log("estimate against run: " + ", ".join(f"{name} {error:+.0%}" for name, error in errors.items()))
    # Last, since this file marks a finished run: whatever failed before leaves a run that can be resumed.
    write_json(folder / DONE, {name: comparison.to_json() for name, comparison in comparisons.items()})
    # With the model: what it looks up is indexed already, which takes a minute again after it was read.
    return Run(folder, fitted=Predictor(core_of(checkpoint, Source(folder))))


def _threads(config: TrainConfig, model: Model, tensors: OrganismTensors, log: Log) -> int:
    """Return the number of CPU threads of the training: that of the run to resume, or by the rule."""
    training, processes = config.training, world().local
    if config.run.resume and not training.threads:
        training = replace(training, threads=recorded_threads(Path(config.run.folder)))
    on_gpu = accelerator(training) == "gpu"
    found = threads_of_training(training, model, tensors.genes, processes=processes, accelerated=on_gpu)
    if spinning(found):
        log(ADVICE)
    return found


def _for_rows(rows: int) -> str:
    """Return a word on the model for so few rows, where there is one."""
    found = model_for_rows(rows)
    return f" or than model={found}" if found else ""


def _fitness(checkpoint: Checkpoint, table: MutantTable) -> NDArray[np.float64]:
    return checkpoint.predict(table)[:, checkpoint.names.index(FITNESS)]


def _weights(model: Model) -> int:
    """Return the number of weights that are trained."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _plan_line(config: TrainConfig, data: RunData, model: Model, baselines: list[str]) -> str:
    weights = _weights(model)
    size = f" of {weights:,} weights, at most {config.training.epochs} epochs" if weights else ""
    targets = data.dataset.phenotypes
    named = ", ".join(p.name for p in targets) if len(targets) <= SHOWN else f"{len(targets)} phenotypes"
    rows, genes = len(data.dataset), len(data.dataset.measured_genes())
    return (
        f"{config.model.name}{size}, and {len(baselines)} baselines: {named} of {rows:,} mutants of "
        f"{data.dataset.name}, {genes:,} genes"
    )


def _split_line(data: RunData) -> str:
    split = data.split
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in split.dropped.items()) or "none"
    return (
        f"split {split.name} (seed {split.seed}): {len(split.train):,} training, {len(split.validation):,} "
        f"validation, {len(split.test):,} test rows; dropped: {dropped}; no leak found"
    )


def _write_predictions(data: RunData, predicted: dict[str, NDArray[np.float64]], target: Path) -> None:
    test = data.part("test")
    frame = replace(data.dataset, table=test).to_pandas()
    frame["unseen"] = data.known().unseen(test)
    for name, values in predicted.items():
        frame[name] = values
    with writing(target) as path:
        frame.to_parquet(path, index=False)
