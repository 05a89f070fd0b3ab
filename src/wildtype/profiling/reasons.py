"""Why a phase takes longer in one profile than in another: the kind of reason, and what shows it.

From the most specific evidence to the least: a collector names itself, waiting needs no operator counts,
wider numbers and copies have names, a doubled phase has more of everything, reads and operators have a cost
each, and only then can operands be larger. Where stacks were sampled, the function is named in which the time
goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wildtype.phases import COLLECTOR

MANY_READS = 0.1
"""Scalar reads per further operator from which on the reads are the reason."""
MOST_OF_IT = 0.6
"""Share of a difference that a function must explain to be named for it."""
FEW_SAMPLES = 3
"""Samples below which a function is not named."""
OTHER_THREAD = 0.2
"""Share of samples in which another thread was at work, from which on it is named."""
MOST_PER_OPERATOR = 200e-6
"""Seconds that a call of an operator takes at most, with the Python around it, unless it was timed longer."""
KINDS = (
    "steps",
    "garbage collector",
    "threads",
    "waiting",
    "other threads",
    "float64",
    "scalar reads",
    "copies",
    "repeated",
    "more operators",
    "larger operands",
    "python",
    "not sampled",
)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Times:
    """Seconds per step of one phase, as a comparison takes them.

    Attributes
    ----------
    seconds : float
        Without what other jobs took.
    waiting : float
        Of them, those in which no thread of the process ran.
    waiting_alone : float
        Of them, those in which the training thread waited; others of the process may have run.
    sd : float
        Standard deviation over steps, NaN where it is not known.
    """

    seconds: float = 0.0
    waiting: float = 0.0
    waiting_alone: float = 0.0
    sd: float = float("nan")


def reason(slow: Record, fast: Record, phase: str, times: tuple[Times, Times], gap: float) -> tuple[str, str]:
    """Return kind and evidence of what makes a phase slower by ``gap`` seconds; ``times`` as the records."""
    kind, why = _kind(slow, fast, phase, times, gap)
    place = place_of(slow, fast, phase, times, gap)
    return kind, f"{why}, at {place}" if place and place not in why else why


def _kind(slow: Record, fast: Record, phase: str, times: tuple[Times, Times], gap: float) -> tuple[str, str]:
    if phase == COLLECTOR:
        return "garbage collector", _collections(slow, fast)
    idle = times[0].waiting - times[1].waiting
    if idle >= gap / 2:
        return (
            "waiting",
            f"the process stood still for {seconds_text(idle)} of it (sleep, disk, other processes)",
        )
    beside = _thread_beside(slow, fast)
    if beside and times[0].waiting_alone - times[1].waiting_alone >= gap / 2:
        return "other threads", f"another thread of this program was at work, at {beside}"
    if slow["counters"] is None or fast["counters"] is None:
        return "python", "operators were not counted"
    mine, theirs = ({**NOTHING, **record["counters"].get(phase, {})} for record in (slow, fast))
    if mine["float64"] >= mine["operators"] / 4 and mine["float64"] > 2 * theirs["float64"]:
        return "float64", f"{mine['float64']:,.0f} of {mine['operators']:,.0f} operators compute in float64"
    count = _repeats(mine, theirs)
    if count >= 2:
        return "repeated", f"the same operators {count} times"
    reads = mine["scalar_reads"] - theirs["scalar_reads"]
    more = mine["operators"] - theirs["operators"]
    if reads >= 1 and reads >= theirs["scalar_reads"] and reads >= MANY_READS * more:
        return "scalar reads", f"{reads:,.0f} more scalar reads of tensors per step{_where(slow)}"
    copies = mine["copies"] - theirs["copies"]
    if copies >= 8 and copies >= more / 2 and copies >= theirs["copies"] / 2:
        return "copies", f"{copies:,.0f} more copies of tensors per step"
    ratio = mine["operators"] / max(theirs["operators"], 1)
    # What operators and the Python around them take is known; a few of them explain no second.
    taken = mine["seconds"] - theirs["seconds"]
    if ratio >= 1.5 and more >= 8 and (taken >= gap / 4 or gap <= more * MOST_PER_OPERATOR):
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


NOTHING: dict[str, Any] = {
    "operators": 0.0,
    "scalar_reads": 0.0,
    "allocated_mib": 0.0,
    "copies": 0.0,
    "seconds": 0.0,
    "float64": 0.0,
    "top": [],
    "slowest": [],
}


def _collections(slow: Record, fast: Record) -> str:
    """Return how often garbage is collected, and from where."""
    mine, theirs = (
        sum(row["calls"] for row in record.get("collections") or () if row["generation"] == 2)
        for record in (slow, fast)
    )
    rows = slow.get("collections") or []
    text = f"{mine:,.3g} full collections per step instead of {theirs:,.3g}"
    if not mine > theirs:
        calls = sum(row["calls"] for row in rows)
        text = f"{calls:,.3g} collections per step, of more objects or more often"
    return f"{text}, at {rows[0]['where']}" if rows and rows[0]["where"] else text


def _repeats(mine: Record, theirs: Record) -> int:
    """Return how many times the most frequent operators are called per call there; 0 unless they agree."""
    known = {top["name"]: top["calls"] for top in theirs["top"]}
    ratios = [top["calls"] / known[top["name"]] for top in mine["top"] if known.get(top["name"])]
    if len(ratios) < max(len(mine["top"]) - 1, 1):
        return 0
    # A phase that runs twice calls every operator twice; other reasons change the mixture of operators.
    times = round(sum(ratios) / len(ratios))
    return times if all(abs(ratio - times) <= 0.25 for ratio in ratios) else 0


def _slower(mine: Record, theirs: Record) -> tuple[str, float] | None:
    """Return the operator with the largest difference of seconds, and that difference."""
    mine, theirs = (
        {top["name"]: top["seconds"] for top in [*each["top"], *each["slowest"]]} for each in (mine, theirs)
    )
    found = [(name, seconds - theirs.get(name, 0.0)) for name, seconds in mine.items()]
    best = max(found, key=lambda item: item[1], default=None)
    return best if best is not None and best[1] > 0 else None


def _where(record: Record) -> str:
    reads = record["reads"] or []
    return f", most at {reads[0]['where']}" if reads else ""


def _thread_beside(slow: Record, fast: Record) -> str:
    """Return where another thread was at work in many samples, and was not in the other run."""
    samples = max((row["samples"] for rows in (slow.get("places") or {}).values() for row in rows), default=0)
    known = {_function(place) for place in fast.get("other_threads") or ()}
    for place, count in (slow.get("other_threads") or {}).items():
        if count >= OTHER_THREAD * samples and _function(place) not in known:
            return str(place)
    return ""


def _function(place: str) -> str:
    return place.partition(" in ")[2]


def place_of(slow: Record, fast: Record, phase: str, times: tuple[Times, Times], gap: float) -> str:
    """Return the innermost function that most of a difference lies in; empty where none does.

    An innermost function that takes longer than in the other run has an excess, which counts for those that
    call it. A function that the other run does not have comes first: it is what was changed.
    """
    rows, others = ((record.get("places") or {}).get(phase, []) for record in (slow, fast))
    # Samples divide the time on the wall, from which other jobs take of all places alike.
    scale, scale_there = (
        time.seconds / record["phases"][phase]["mean"] if time.seconds and phase in record["phases"] else 0.0
        for record, time in ((slow, times[0]), (fast, times[1]))
    )
    mine, theirs = (
        {row["function"]: row["leaves"].get(row["function"], 0.0) for row in each} for each in (rows, others)
    )
    excess = {
        leaf: max(1 - theirs.get(leaf, 0.0) * scale_there / (seconds * scale), 0.0)
        for leaf, seconds in mine.items()
        if seconds * scale > 0
    }
    found = [
        row
        for row in rows
        if row["samples"] >= FEW_SAMPLES
        and scale * sum(s * excess.get(leaf, 1.0) for leaf, s in row["leaves"].items()) >= MOST_OF_IT * gap
    ]
    best = max(found, key=lambda row: (row["function"] not in theirs, row["depth"]), default=None)
    return str(best["where"]) if best else ""


def seconds_text(value: float) -> str:
    """Return seconds with a unit that fits."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
