"""`FitTask`: one training step and one validation pass, for Lightning's loop, phase by phase.

Every random draw of a step comes from (seed, step), so that a resumed run continues as if it had never
stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from wildtype.datasets.scaling import LabelScaler
from wildtype.errors import ConfigError, DivergedError
from wildtype.models.interface import Model, OrganismTensors, Output, WildType
from wildtype.mutants.batch import MutantBatch
from wildtype.nn.oversmoothing import watched
from wildtype.phases import no_phase, phase
from wildtype.seeds import derive
from wildtype.training import exchange
from wildtype.training.config import TrainingConfig
from wildtype.training.epoch_table import EpochTable
from wildtype.training.micro_batches import DetachedWildType, known_targets, micro_batches
from wildtype.training.objective import Objective, objective
from wildtype.training.schedules import Schedule
from wildtype.training.step_log import NotFinite, Number, StepLog
from wildtype.training.validation import ScoredRows
from wildtype.training.weights import TargetWeights
from wildtype.training.world import Pending, World


class FitTask(LightningModule):
    """A model, the organism it sees, and how it is optimised.

    Parameters
    ----------
    model : Model
        The model to fit, in place.
    organism : OrganismTensors
        What it sees of the organism.
    config : TrainingConfig
        Optimiser settings.
    steps : int
        Optimiser steps of the whole run, for the schedule.
    seed : int
        Root of all random draws.
    weights : TargetWeights, optional
        How targets count; alike, and all as scalars, without.
    outputs : sequence of Output
        The phenotypes, for the validation score; none: all are scalars.
    execution : str
        How much of a step is done, one of ``EXECUTIONS``: all of ``training``; ``forward_backward``, without
        the optimiser's step; ``forward``, without gradients' pass; or ``data_only``, where a model of one
        number, with a backward pass and a step of its own, stands in for the model.
    world : World, optional
        The processes that train it; this one alone, without.
    scaler : LabelScaler, optional
        How labels were scaled, to report errors in original units; in those of the labels, without.
    epochs : EpochTable, optional
        Where the scores of every epoch go, phenotype by phenotype, beside the loggers.
    """

    def __init__(
        self,
        model: Model,
        organism: OrganismTensors,
        config: TrainingConfig,
        steps: int,
        seed: int,
        weights: TargetWeights | None = None,
        execution: str = "training",
        outputs: Sequence[Output] = (),
        world: World | None = None,
        scaler: LabelScaler | None = None,
        epochs: EpochTable | None = None,
    ) -> None:
        super().__init__()
        self.world = world or World()
        self.model = model
        self.organism = organism
        self.config = config
        self.schedule = Schedule(config, steps)
        self.seed = seed
        self.weights = weights
        self.outputs = tuple(outputs)
        self.execution = execution
        self._still: list[nn.Parameter] = []
        if execution == "data_only":
            self.trivial = nn.Parameter(torch.zeros(()))
            # Processes wait for the gradient of every parameter that asks for one.
            self._still = [p for p in model.parameters() if p.requires_grad]
            for parameter in self._still:
                parameter.requires_grad_(False)
        self.step = 0  # of the whole run, resumed parts included
        self.epoch = 0  # finished ones, likewise
        self.validation_score = float("-inf")
        self.scores: list[float] = []  # of finished epochs, on validation rows
        self.scaler = scaler
        self.epochs = epochs
        self.validation = ScoredRows(self.outputs)
        self._training = ScoredRows(self.outputs)
        self._wild_type: WildType | None = None
        self._unused: list[nn.Parameter] = []
        self._gradients_checked = False

    def on_fit_start(self) -> None:
        """Move the organism beside the model."""
        self.organism = self.organism.to(self.device)
        self.weights = None if self.weights is None else self.weights.to(self.device)
        self._log = StepLog(self.trainer.loggers if self.world.is_rank_zero else [])

    def on_fit_end(self) -> None:
        """Give parameters back what was taken from them."""
        for parameter in self._still:
            parameter.requires_grad_(True)

    def transfer_batch_to_device(
        self, batch: MutantBatch, device: torch.device, dataloader_idx: int
    ) -> MutantBatch:
        """Move a batch."""
        return batch.to(device, non_blocking=True)

    def on_train_epoch_start(self) -> None:
        """Tell the model which epoch begins, and encode the wild type if that is to serve for all of it."""
        self.model.set_epoch(self.epoch)
        self._unused = [p for p in self.model.unused_parameters() if p.requires_grad]
        self._gradients_checked = False
        self._training = ScoredRows(self.outputs)
        if self.model.encode_per_epoch and self.execution != "data_only":
            # Dropout of the wild type is the same in all processes, and in a resumed run.
            self._draw_from(derive(self.seed, "wild type of epoch", self.epoch))
            with torch.no_grad():
                self._wild_type = self.model.encode(self.organism)

    def on_train_batch_start(self, batch: MutantBatch, batch_idx: int) -> None:
        """Set this step's learning rate and random streams."""
        with phase("optimizer"):
            # From (seed, step) alone, not from the state of a generator: a resumed run draws as one that was
            # never stopped. torch.manual_seed asks every kind of device, as slow as a small model's loss.
            seed = derive(self.seed, "step", self.step)
            if not self.world.is_rank_zero:  # rank 0 draws as a single process does
                seed = derive(seed, "process", self.world.rank)
            self._draw_from(seed)
            rate = self.schedule.rate(self.step, self.scores)
            for group in self.trainer.optimizers[0].param_groups:
                group["lr"] = rate
            self._rate = rate
            self.trainer.optimizers[0].zero_grad()

    def _draw_from(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def optimizer_zero_grad(self, *arguments: Any) -> None:
        """Do nothing: the gradients of a step's micro-batches add up, and were cleared when it began."""

    def training_step(self, batch: MutantBatch, batch_idx: int) -> Tensor | None:
        """Encode the wild type once, predict every mutant of the batch, and return the objective."""
        record: Callable[[Tensor], dict[str, Tensor]] = self._record_of_data
        if self.execution == "data_only":
            with phase("loss"):
                # A mean over known targets that is 0, not 0/0, for a batch without any.
                known = known_targets(batch) if batch.step_targets is None else batch.step_targets
                total = self.world.size * self.trivial * (batch.value.nansum() / known.clamp(min=1))
                sums = self.world.total_later(total.detach() / self.world.size)
        else:
            several = self.config.gradient_accumulation_steps > 1
            result = self._accumulate(batch) if several else self.objective(batch)
            with phase("loss"):
                total = result.total
                sums, record = self._over_processes(result)
                if self.world.size > 1 and self._unused:
                    # Processes wait for a gradient of every parameter: 0, which is taken away again.
                    total = total + torch.stack([0 * p.sum() for p in self._unused]).sum()
        with phase("logging"):
            self._log.begin(self.step, self.epoch, sums, record, learning_rate=self._rate)
        self.step += 1
        # Without a loss Lightning leaves out the backward pass. It refuses that where processes wait for each
        # other; `backward` leaves it out then.
        return None if self.execution == "forward" and self.world.size == 1 else total

    def log_step(self, **record: Number) -> None:
        """Log further numbers of this step. Lightning's ``log`` would read each of them at once."""
        self._log.add(**record)

    def on_train_batch_end(self, *arguments: Any) -> None:
        """Read the log if enough has gathered; callbacks have logged theirs by now."""
        with phase("logging"):
            if self._log.full:
                self.check_losses()

    def objective(self, batch: MutantBatch) -> Objective:
        """Encode the wild type, unless that is done once per epoch, and return the batch's objective."""
        return self._objective_of(self._encoded(), batch)

    def _encoded(self) -> WildType:
        if self._wild_type is not None:
            return self._wild_type
        with phase("encode wild type"):
            # The same rows and non-edges of the priors in every process: DDP's average over processes is then
            # the gradient that one process has.
            stream = torch.Generator().manual_seed(derive(self.seed, "prior", self.step))
            return self.model.encode(self.organism, stream)

    def _objective_of(self, wild_type: WildType, batch: MutantBatch) -> Objective:
        with phase("head"):
            prediction = self.model(wild_type, batch)
        with phase("loss"):
            found = objective(
                prediction,
                wild_type,
                batch,
                loss=self.config.loss,
                weights=self.weights,
                processes=self.world.size,
            )
        if self.execution == "training":
            self._training.keep(prediction, batch)
        return found

    def _accumulate(self, batch: MutantBatch) -> Objective:
        """Return the objective of a batch after the backward passes of all its micro-batches but the last."""
        *others, last = micro_batches(batch, self.config.gradient_accumulation_steps)
        wild_type = self._encoded()
        detached = DetachedWildType.of(wild_type)
        done = torch.zeros((), device=self.device)  # data loss of the micro-batches so far
        for micro_batch in others:
            # These passes end at the detached copy. DDP ignores gradients made inside its forward until the
            # backward pass that follows it: processes exchange their sums once per step.
            result = self._objective_of(detached.copy, micro_batch)
            if self.execution != "forward":
                with phase("backward"):
                    result.total.backward()
            done += result.terms["data"].detach()
        result = self._objective_of(wild_type, last)
        with phase("loss"):
            carried = detached.gradient_term()
            rest = wild_type.weights.get("data", 1.0) * self.world.size * done
            # x − x.detach() is 0 with the gradient of x: the logged loss stays that of the step.
            result.total = result.total + (carried - carried.detach()) + rest
            result.terms["data"] = result.terms["data"] + done
            result.weighted["data"] = result.weighted["data"] + rest
        return result

    @staticmethod
    def _record_of_data(total: Tensor) -> dict[str, Tensor]:
        return {"loss": total}

    def _over_processes(self, result: Objective) -> tuple[Pending, Callable[[Tensor], dict[str, Tensor]]]:
        """Begin to sum the data losses of all processes; return the sums, and what makes a record of them."""
        # A process divides by the known targets of all of them: the data losses add up to that of the batch.
        # Its weighted data loss is multiplied by their number, since DDP averages gradients; not in the log.
        terms = {name: term.detach() for name, term in result.terms.items()}
        weighted = {name: term.detach() for name, term in result.weighted.items()}
        parts = torch.stack([terms["data"], weighted["data"] / self.world.size])

        def record(sums: Tensor) -> dict[str, Tensor]:
            terms["data"], weighted["data"] = sums.unbind()
            return Objective(torch.stack(list(weighted.values())).sum(), terms, weighted).log_record()

        # Only the exchange of gradients makes processes wait for each other in a step.
        return self.world.total_later(parts), record

    def backward(self, loss: Tensor, *arguments: Any, **more: Any) -> None:
        """Run the backward pass, at the end of which processes exchange gradients."""
        if self.execution != "forward":
            loss.backward()
            exchange.leave()

    def on_after_backward(self) -> None:
        """Hold gradients to what the model declares; those of 0 for unused parameters are taken away."""
        if self.execution == "forward":
            return
        if not self._gradients_checked:
            self._check_gradients()
            self._gradients_checked = True
        # As in one process, where they have none: the optimiser neither decays such weights nor moves them.
        for parameter in self._unused:
            parameter.grad = None

    def _check_gradients(self) -> None:
        """Compare parameters without gradients with those that the model declares, in an epoch's first step.

        Raises
        ------
        ConfigError
            If a declared one has a gradient; or, of several processes, if one has none that is not declared.
        """
        declared = {id(p) for p in self._unused}
        for name, p in self.model.named_parameters():
            what = f"model {self.model.config.name}: the parameter {name}"
            if id(p) in declared and p.grad is not None and p.grad.any():
                raise ConfigError(
                    f"{what} is declared unused and has a gradient: leave it out of unused_parameters"
                )
            if self.world.size > 1 and p.requires_grad and p.grad is None:
                raise ConfigError(
                    f"{what} has no gradient in process {self.world.rank}, and processes wait for the "
                    f"gradients of all parameters: declare it in unused_parameters if no loss depends on it"
                )

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        """Step, after the closure has computed loss and gradients; or only compute them."""

        def closure() -> Any:
            with no_phase:  # the closure is the whole step but the optimiser's own arithmetic
                return optimizer_closure()

        if self.execution in ("forward", "forward_backward"):
            optimizer_closure()
        else:
            with phase("optimizer"):
                optimizer.step(closure=closure)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the norm of all gradients; without a scaler, bfloat16 needs nothing else."""
        if gradient_clip_val:
            # The norm before clipping; clipping computes it anyway, and nothing waits for it here.
            self.log_step(gradient_norm=torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val))

    def flush_log(self) -> None:
        """Write what has been logged so far."""
        self._log.flush(wait=False)

    def check_losses(self) -> None:
        """Write what has been logged so far, and stop if a loss is not finite; every process must call it.

        Raises
        ------
        DivergedError
            Naming step and term.
        """
        # The check reads numbers that the log copies from the device anyway, once in `GATHERED` steps: it
        # never makes a GPU wait. Some steps later is early enough: nothing is saved before this is called.
        # One process may see a loss that the others do not (an infinite prior under its own dropout), so
        # all of them exchange what they saw and stop together; one alone would leave the others waiting.
        mine = self._log.flush()
        with phase(exchange.SYNC) if self.world.size > 1 else nullcontext():
            found = [problem for problem in self.world.gathered(mine) if problem is not None]
        if found:
            raise DivergedError(self._divergence(min(found, key=lambda problem: problem.step)))

    def _divergence(self, problem: NotFinite) -> str:
        """Return what a loss that is not finite means, and what to try."""
        remedies = [f"lower training.learning_rate={self.config.learning_rate:g}"]
        if not self.config.clip:
            remedies.append("set training.clip=1")
        if self.trainer.precision != "32-true":
            remedies.append("set training.precision=32")
        if problem.term not in ("data", "total"):
            remedies.append("lower the weight of this term in the model's settings")
        if problem.step == 0:  # no weight has changed yet
            remedies = ["check labels, features and embeddings for values that are extreme"]
        return (
            f"training diverged at step {problem.step + 1} (epoch {problem.epoch + 1}): the loss "
            f"{problem.term!r} is {problem.value}; {', or '.join(remedies)}"
        )

    def on_validation_epoch_start(self) -> None:
        """Encode the wild type once for the whole validation pass."""
        self.check_losses()  # scores of predictions that are no numbers would hide what happened
        # DDP does not broadcast buffers (`fit._strategy`). Integer ones record what training has seen, such
        # as the largest order of a mutant, which differs by process; the largest is that of the whole data.
        for buffer in self.model.buffers():
            if not buffer.is_floating_point():
                buffer.copy_(self.world.largest(buffer))
        self._wild_type = self.model.encode(self.organism.without_priors())
        self.validation = ScoredRows(self.outputs)

    def validation_step(self, batch: MutantBatch, batch_idx: int) -> None:
        """Collect predictions of everything that was measured."""
        assert self._wild_type is not None
        self.validation.add(self.model(self._wild_type, batch), batch)

    def on_validation_epoch_end(self) -> None:
        """Log the scores of this epoch's training and validation rows, and how alike genes have become."""
        self._training.add_kept()
        record = {}
        for name, rows in (("train", self._training), ("validation", self.validation)):
            rows.join(self.world)
            record[f"{name}/pearson"], record[f"{name}/error"] = rows.result()
            self.log_rows(name, rows)
        self.validation_score = record["validation/pearson"]
        if self.config.oversmoothing and self.world.is_rank_zero:
            states = self.model.layer_states(self.organism)
            found = watched(states, self.organism.relations)
            record |= {f"oversmoothing/{name}": value for name, value in found.items()}
        self._log.write(self.step - 1, self.epoch, record)
        self._wild_type = None

    def log_rows(self, name: str, rows: ScoredRows) -> None:
        """Log the metrics of every phenotype of a part of the split, in original units."""
        found = rows.by_phenotype(self.scaler)
        if self.epochs is not None:
            self.epochs.add(self.epoch + 1, name, found)
        metrics = {
            f"{name}/{score.phenotype}/{metric}": value
            for score in found
            for metric, value in score.metrics.items()
        }
        self._log.write(self.step - 1, self.epoch, metrics, table=False)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW; norms, biases and embeddings of one dimension are not decayed."""
        stepped = [self.trivial] if self.execution == "data_only" else list(self.model.parameters())
        decayed = [p for p in stepped if p.ndim > 1]
        others = [p for p in stepped if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": decayed, "weight_decay": self.config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.config.learning_rate, fused=True)
