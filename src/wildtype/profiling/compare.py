"""Two profiles side by side: which phases explain the gap, and what they do differently.

The time of an epoch is steps × seconds per step. So the gap between two runs has two kinds of causes: more
steps, and more seconds in some phase of a step. Logarithms of ratios add up:

    log(epoch' / epoch) = log(steps' / steps) + log(step' / step)

so the share of each term is its quotient with the left side, and a phase's share of the second term is its
part of the difference per step. A difference that lies in no phase is reported as unexplained.

Times are those of the runs themselves. The seconds in which the training thread was ready and other jobs had
all processors are left out. Where a run's processor was slower (shared, or at a lower clock), its seconds on
it are scaled to the other's, as far as a fixed piece of arithmetic shows that. A difference below twice its
standard error, from the spread over steps, is noise and no cause.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import isfinite, isnan, log, sqrt
from typing import Any

from wildtype.errors import ConfigError
from wildtype.phases import BETWEEN, COLLECTOR
from wildtype.profiling.reasons import Record, Times, reason, seconds_text

SAME = 0.02
"""Ratios closer to one than this are no gap."""
SMALL = 0.05
"""Share of a gap below which a cause is not named."""
MUCH = 0.25
"""Share of a gap from which on time in no phase is a cause of its own."""
ERRORS = 2.0
"""Standard errors below which a difference is noise."""
BUSY_NOISE = 0.1
"""Share of a phase that differs between equal runs beside another job, whose memory and caches they share."""
SLOWER = 1.1
"""How much longer the fixed piece of arithmetic must take for the processor to be called slower."""
NOT_SAMPLED = "unattributed"


@dataclass(frozen=True)
class Cause:
    """One reason for a gap.

    Attributes
    ----------
    phase : str or None
        The phase; None: the number of steps.
    kind : str
        One of `reasons.KINDS`.
    share : float
        Of the gap between epochs; negative: it makes the gap smaller.
    evidence : str
        What shows it, in a sentence.
    """

    phase: str | None
    kind: str
    share: float
    evidence: str


@dataclass(frozen=True)
class Gap:
    """How another run differs from the first.

    Attributes
    ----------
    base, other : str
        Names of the runs.
    step, epoch, steps : dict
        Seconds per step, predicted seconds per epoch, and steps per epoch: ``base``, ``other``, ``ratio`` and
        ``difference``.
    phases : list of dict
        The same per phase, seconds per step, with the ``share`` of the difference; the largest first.
    unexplained : dict
        The same for the time in no phase.
    noise : float
        Seconds per step below which a difference of the step is noise.
    remarks : list of str
        How the machine took part: other jobs, a slower processor.
    causes : list of Cause
        The strongest first.
    """

    base: str
    other: str
    step: dict[str, float]
    epoch: dict[str, float]
    steps: dict[str, float]
    phases: list[dict[str, Any]]
    unexplained: dict[str, float]
    noise: float = 0.0
    remarks: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def sentence(self) -> str:
        """Return the gap and its strongest cause in a sentence."""
        if abs(log(self.epoch["ratio"])) < SAME:
            return f"{self.other} and {self.base} take the same time."
        if self.steps["ratio"] == 1.0 and abs(self.step["difference"]) < self.noise:
            return (
                f"{self.other} and {self.base} differ by less than the noise of the runs "
                f"({seconds_text(abs(self.step['difference']))} per step, noise {seconds_text(self.noise)})."
            )
        more = f"{self.other} takes {self.epoch['ratio']:.2f} times as long as {self.base} per epoch"
        if not self.causes:
            return f"{more}; no cause stands out."
        return f"{more}; {self.causes[0].share:.0%} of it: {self.causes[0].evidence}"


def compare_profiles(base: dict[str, Any], *others: dict[str, Any]) -> list[Gap]:
    """Compare profile records with the first.

    Raises
    ------
    ConfigError
        If there is nothing to compare with, or a record has no timed step.
    """
    if not others:
        raise ConfigError("there is one profile only: name at least two")
    for record in (base, *others):
        if not record["steps"] or not isfinite(record["seconds_per_step"]["mean"] or float("nan")):
            raise ConfigError(
                f"the profile of {record['name']!r} has no timed step: it was stopped during its warm-up; "
                f"profile more steps"
            )
    return [_gap(base, other) for other in others]


def _gap(base: Record, other: Record) -> Gap:
    speeds = _speeds(base, other)
    mine, theirs = (
        _times(record, speed, (base, other)) for record, speed in zip((base, other), speeds, strict=True)
    )
    per_step = _pair(*(sum(time.seconds for time in times.values()) for times in (mine, theirs)))
    steps = _pair(base["workload"]["steps_per_epoch"], other["workload"]["steps_per_epoch"])
    epoch = _pair(per_step["base"] * steps["base"], per_step["other"] * steps["other"])
    phases: list[dict[str, Any]] = [
        {
            "phase": name,
            **_pair(
                mine.get(name, Times()).seconds, theirs.get(name, Times()).seconds, of=per_step["difference"]
            ),
        }
        for name in dict.fromkeys([*mine, *theirs])
        if name != NOT_SAMPLED
    ]
    phases.sort(key=lambda row: -abs(row["difference"]))
    lost = _pair(mine[NOT_SAMPLED].seconds, theirs[NOT_SAMPLED].seconds, of=per_step["difference"])
    whole = [
        Times(per_step[side], sd=_spread(record, "")) for side, record in (("base", base), ("other", other))
    ]
    noise = _noise(whole[0], whole[1], base, other)
    gap = Gap(base["name"], other["name"], per_step, epoch, steps, phases, lost, noise)
    gap.remarks.extend(_remarks(base, other, speeds))
    gap.causes.extend(_causes(base, other, mine, theirs, gap))
    return gap


def _load(record: Record, what: str) -> float:
    return float((record.get("load") or {}).get(what) or 0.0)


def _speeds(base: Record, other: Record) -> tuple[float, float]:
    """Return how much longer the fixed piece of arithmetic took in each run than in the faster one.

    1 where no other job ran: threads of the run itself slow each other down, too.
    """
    probes = [_load(record, "probe") for record in (base, other)]
    if not all(probes) or not any(_load(record, "busy") for record in (base, other)):
        return 1.0, 1.0
    found = [probe / min(probes) for probe in probes]
    first, second = (ratio if ratio >= SLOWER else 1.0 for ratio in found)
    return first, second


def _times(record: Record, speed: float, both: tuple[Record, Record]) -> dict[str, Times]:
    """Return the times of every phase without what other jobs took, and last of what is in no phase."""
    # Threads of this process that are more than its cores put each other off: that part is of the run.
    excess = max(_load(record, "own_cores") - 1, 0.0) + (_load(record, "threads") > _load(record, "cores"))
    others = _load(record, "other_cores")
    foreign = others / (others + excess) if others + excess else 1.0
    gpu = record.get("clock") == "gpu"  # timed on its stream, from which no processor's seconds can be taken
    found = {}
    for name, row in _steady(record).items():
        delay = 0.0 if gpu else foreign * row["delay"]
        seconds = max(row["seconds"] - delay, 0.0)
        waiting, alone = (
            0.0 if gpu else min(max(seconds - row[clock], 0.0), seconds) for clock in ("cpu", "thread")
        )
        slower = 1.0 if gpu else speed
        found[name] = Times(waiting + (seconds - waiting) / slower, waiting, alone, _spread(record, name))
    # Of a run whose stacks nobody sampled, all of the rest is one: it is compared with that of another.
    if BETWEEN not in found and any(BETWEEN in each["phases"] for each in both):
        found[BETWEEN], found[NOT_SAMPLED] = found[NOT_SAMPLED], Times()
    return found


def _steady(record: Record) -> dict[str, dict[str, float]]:
    """Return the clocks of every phase and of the rest; means of all steps in a record without others."""
    known = (record.get("steady") or {}).get("phases") or {}
    rest = {"mean": record["unattributed"]["mean"]}
    rows = {**record["phases"], NOT_SAMPLED: rest}
    lost = known.get(NOT_SAMPLED)
    seen = record["phases"].get(BETWEEN, {}).get("mean", 0.0)
    part = seen / (seen + rest["mean"]) if seen else 0.0
    found = {}
    for name, row in rows.items():
        if name in (BETWEEN, NOT_SAMPLED) and lost is not None:
            share = part if name == BETWEEN else 1 - part
            found[name] = {clock: seconds * share for clock, seconds in lost.items()}
        elif name in known:
            found[name] = known[name]
        else:
            cpu = row.get("cpu", row["mean"])
            found[name] = {
                "seconds": row["mean"],
                "cpu": cpu,
                "thread": row.get("thread", cpu),
                "delay": row.get("delay", 0.0),
            }
    return found


def _spread(record: Record, phase: str) -> float:
    known = (record.get("steady") or {}).get("sd") or {}
    found = known.get(NOT_SAMPLED if phase == BETWEEN else phase)
    return float("nan") if found is None else float(found)


def _noise(mine: Times, theirs: Times, base: Record, other: Record) -> float:
    """Return the difference of two means below which it is noise; 0 where the spread is not known."""
    variance = sum(
        0.0 if isnan(time.sd) else time.sd**2 / max(record["steps"], 1)
        for time, record in ((mine, base), (theirs, other))
    )
    busy = any(_load(record, "busy") for record in (base, other))
    return max(ERRORS * sqrt(variance), BUSY_NOISE * min(mine.seconds, theirs.seconds) if busy else 0.0)


def _remarks(base: Record, other: Record, speeds: tuple[float, float]) -> list[str]:
    """Return a sentence about every run that was measured on a busy machine."""
    found = []
    for record, speed in zip((base, other), speeds, strict=True):
        if not _load(record, "busy"):
            continue
        text = (
            f"{record['name']} was measured on a busy machine: other processes used "
            f"{_load(record, 'other_cores'):.1f} of {_load(record, 'cores'):.0f} cores (load "
            f"{_load(record, 'load'):.1f}), and in {_load(record, 'put_off'):.0%} of a step the run was "
            f"ready and had no processor, which is left out here"
        )
        if speed > 1:
            text += f"; arithmetic took {speed:.2f} times as long as in the other run, to which it is scaled"
        found.append(f"{text}.")
    return found


def _pair(base: float, other: float, *, of: float | None = None) -> dict[str, float]:
    ratio = other / base if base else float("inf") if other else 1.0
    row = {"base": base, "other": other, "ratio": ratio, "difference": other - base}
    if of is not None:
        row["share"] = (other - base) / of if of else 0.0
    return row


def _causes(
    base: Record, other: Record, mine: dict[str, Times], theirs: dict[str, Times], gap: Gap
) -> list[Cause]:
    whole = log(gap.epoch["ratio"])
    if abs(whole) < SAME:
        return []
    of_steps, of_time = log(gap.steps["ratio"]) / whole, log(gap.step["ratio"]) / whole
    causes = []
    if abs(of_steps) >= SMALL:
        small, large = base["workload"]["batch_size"], other["workload"]["batch_size"]
        text = f"{gap.steps['other']:,.0f} steps per epoch instead of {gap.steps['base']:,.0f}"
        if small != large:
            text += f", of {large:,} mutants instead of {small:,}"
        causes.append(Cause(None, "steps", of_steps, text))
    if abs(gap.step["difference"]) < gap.noise:
        return causes
    for row in gap.phases:
        name, share = str(row["phase"]), of_time * float(row["share"])
        times = mine.get(name, Times()), theirs.get(name, Times())
        if abs(share) >= SMALL and abs(row["difference"]) >= _noise(*times, base, other):
            causes.append(_cause(base, other, row, times, share))
    rest = of_time * gap.unexplained["share"]
    if rest >= MUCH:
        text = f"{seconds_text(gap.unexplained['other'])} per step in no phase; profile run samples where"
        causes.append(Cause(NOT_SAMPLED, "not sampled", rest, text))
    causes = _joined(causes, base, other)
    return sorted(causes, key=lambda cause: -cause.share)


def _cause(
    base: Record, other: Record, row: dict[str, Any], times: tuple[Times, Times], share: float
) -> Cause:
    """Return the reason why a phase of one run takes longer, with its evidence."""
    phase = str(row["phase"])
    turned = row["difference"] < 0
    slow, fast = (base, other) if turned else (other, base)
    of_slow, of_fast = times if turned else times[::-1]
    head = (
        f"{phase}, {seconds_text(row['other'])} per step instead of {seconds_text(row['base'])}"
        if row["base"]
        else f"{phase}, {seconds_text(row['other'])} per step"
    )
    kind, why = reason(slow, fast, phase, (of_slow, of_fast), abs(row["difference"]))
    return Cause(phase, kind, share, f"{head}, where {why}" if turned else f"{head}: {why}")


def _joined(causes: list[Cause], base: Record, other: Record) -> list[Cause]:
    """Return causes with those of several phases that have one reason made one."""
    for kind, joined in (("float64", {"float64"}), ("threads", {"python", "larger operands", "waiting"})):
        text = ""
        if kind == "threads":
            text = _threads(base, other)
            if not text:
                continue
        same = [cause for cause in causes if cause.kind in joined and cause.phase not in (None, COLLECTOR)]
        if not same or (kind != "threads" and len(same) < 2):
            continue
        most = max(same, key=lambda cause: cause.share)
        also = ", ".join(str(cause.phase) for cause in same if cause is not most)
        evidence = f"{text}; most of all {most.evidence}" if text else f"{most.evidence}; also {also}"
        one = Cause(None if text else most.phase, kind, sum(cause.share for cause in same), evidence)
        causes = [cause for cause in causes if cause not in same] + [one]
    return causes


def _threads(base: Record, other: Record) -> str:
    """Return what differs in threads, if more than the cores or fewer than before can slow a run down."""
    before, now = (int(_load(record, "threads")) for record in (base, other))
    cores = int(_load(other, "cores"))
    if not before or not now or before == now:
        return ""
    if max(before, now) > cores:
        return f"{now} threads on {cores} cores instead of {before}, which take each other's processors"
    return f"{now} threads instead of {before}"
