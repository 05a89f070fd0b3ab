"""Two profiles side by side: which phases explain the gap, and what they do differently.

The time of an epoch is steps × seconds per step. So the gap between two runs has two kinds of causes: more
steps, and more seconds in some phase of a step. Logarithms of ratios add up:

    log(epoch' / epoch) = log(steps' / steps) + log(step' / step)

so the share of each term is its quotient with the left side, and a phase's share of the second term is its
part of the difference per step. A difference that lies in no phase is reported as unexplained.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import isfinite, log
from typing import Any

from wildtype.errors import ConfigError

SAME = 0.02
"""Ratios closer to one than this are no gap."""
SMALL = 0.05
"""Share of a gap below which a cause is not named."""
MANY_READS = 0.1
"""Scalar reads per further operator from which on the reads are the reason."""


@dataclass(frozen=True)
class Cause:
    """One reason for a gap.

    Attributes
    ----------
    phase : str or None
        The phase; None: the number of steps.
    kind : str
        ``steps``, ``waiting``, ``scalar reads``, ``repeated``, ``more operators``, ``larger operands`` or
        ``python``.
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
    causes: list[Cause] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def sentence(self) -> str:
        """Return the gap and its strongest cause in a sentence."""
        if abs(log(self.epoch["ratio"])) < SAME:
            return f"{self.other} and {self.base} take the same time."
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


def _gap(base: dict[str, Any], other: dict[str, Any]) -> Gap:
    per_step = _pair(base["seconds_per_step"]["mean"], other["seconds_per_step"]["mean"])
    steps = _pair(base["workload"]["steps_per_epoch"], other["workload"]["steps_per_epoch"])
    epoch = _pair(per_step["base"] * steps["base"], per_step["other"] * steps["other"])
    names = list(dict.fromkeys([*base["phases"], *other["phases"]]))
    phases = [
        {"phase": name, **_pair(_mean(base, name), _mean(other, name), of=per_step["difference"])}
        for name in names
    ]
    phases.sort(key=lambda row: -abs(float(row["difference"])))
    lost = _pair(base["unattributed"]["mean"], other["unattributed"]["mean"], of=per_step["difference"])
    gap = Gap(base["name"], other["name"], per_step, epoch, steps, phases, lost)
    gap.causes.extend(_causes(base, other, gap))
    return gap


def _pair(base: float, other: float, *, of: float | None = None) -> dict[str, float]:
    ratio = other / base if base else float("inf") if other else 1.0
    row = {"base": base, "other": other, "ratio": ratio, "difference": other - base}
    if of is not None:
        row["share"] = (other - base) / of if of else 0.0
    return row


def _mean(record: dict[str, Any], phase: str, what: str = "mean") -> float:
    return float(record["phases"].get(phase, {}).get(what, 0.0))


def _causes(base: dict[str, Any], other: dict[str, Any], gap: Gap) -> list[Cause]:
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
    for row in gap.phases:
        share = of_time * float(row["share"])
        if abs(share) >= SMALL:
            causes.append(_cause(base, other, row, share))
    return sorted(causes, key=lambda cause: -cause.share)


def _cause(base: dict[str, Any], other: dict[str, Any], row: dict[str, Any], share: float) -> Cause:
    """Return the reason why a phase of one run takes longer, with its evidence."""
    phase = str(row["phase"])
    slow, fast = (other, base) if row["difference"] >= 0 else (base, other)
    gap = abs(float(row["difference"]))
    head = (
        f"{phase}, {_seconds(row['other'])} per step instead of {_seconds(row['base'])}"
        if row["base"]
        else f"{phase}, {_seconds(row['other'])} per step"
    )
    kind, why = _kind(slow, fast, phase, gap)
    return Cause(phase, kind, share, f"{head}: {why}" if slow is other else f"{head}, where {why}")


def _kind(slow: dict[str, Any], fast: dict[str, Any], phase: str, gap: float) -> tuple[str, str]:
    # From the most specific evidence to the least: waiting needs no operator counts, a doubled phase has more
    # of everything, reads and operators have a cost each, and only then can operands be larger.
    idle = _idle(slow, phase) - _idle(fast, phase)
    if idle >= gap / 2:
        return "waiting", f"the process stood still for {_seconds(idle)} of it (sleep, disk, other processes)"
    if slow["counters"] is None or fast["counters"] is None:
        return "python", "operators were not counted"
    mine, theirs = (record["counters"].get(phase, _NOTHING) for record in (slow, fast))
    times = _repeats(mine, theirs)
    if times >= 2:
        return "repeated", f"the same operators {times} times"
    reads = mine["scalar_reads"] - theirs["scalar_reads"]
    more = mine["operators"] - theirs["operators"]
    if reads >= 1 and reads >= theirs["scalar_reads"] and reads >= MANY_READS * more:
        return "scalar reads", f"{reads:,.0f} more scalar reads of tensors per step{_where(slow)}"
    ratio = mine["operators"] / max(theirs["operators"], 1)
    if ratio >= 1.5 and more >= 8:
        first = mine["top"][0]["name"] if mine["top"] else "none"
        return "more operators", (
            f"{mine['operators']:,.0f} operators instead of {theirs['operators']:,.0f}, most of all {first}"
        )
    mib = mine["allocated_mib"] - theirs["allocated_mib"]
    slower = _slower(mine, theirs)
    if slower and (mib > 1 or slower[1] >= gap / 2):
        beside = f", {mib:,.1f} MiB more are allocated" if mib > 0 else ""
        return "larger operands", f"{slower[0]} takes longer{beside}"
    return "python", "what is between the operators takes longer"


def _idle(record: dict[str, Any], phase: str) -> float:
    """Return wall seconds beyond the seconds of all threads: the process waited."""
    # A GPU's phases are timed on its stream, which processor seconds cannot be subtracted from.
    if record.get("clock") == "gpu":
        return 0.0
    return max(_mean(record, phase) - _mean(record, phase, "cpu"), 0.0)


_NOTHING: dict[str, Any] = {"operators": 0.0, "scalar_reads": 0.0, "allocated_mib": 0.0, "top": []}


def _repeats(mine: dict[str, Any], theirs: dict[str, Any]) -> int:
    """Return how many times the most frequent operators are called per call there; 0 unless they agree."""
    known = {top["name"]: top["calls"] for top in theirs["top"]}
    ratios = [top["calls"] / known[top["name"]] for top in mine["top"] if known.get(top["name"])]
    if len(ratios) < max(len(mine["top"]) - 1, 1):
        return 0
    # A phase that runs twice calls every operator twice; other reasons change the mixture of operators.
    times = round(sum(ratios) / len(ratios))
    return times if all(abs(ratio - times) <= 0.25 for ratio in ratios) else 0


def _slower(mine: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, float] | None:
    """Return the operator with the largest difference of seconds, and that difference."""
    known = {top["name"]: top["seconds"] for top in theirs["top"]}
    found = [(top["name"], top["seconds"] - known.get(top["name"], 0.0)) for top in mine["top"]]
    best = max(found, key=lambda item: item[1], default=None)
    return best if best is not None and best[1] > 0 else None


def _where(record: dict[str, Any]) -> str:
    reads = record["reads"] or []
    return f", most at {reads[0]['where']}" if reads else ""


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
