"""Profile records, and what a comparison of two says."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ConfigError
from wildtype.phases import phase
from wildtype.profiling.compare import compare_profiles
from wildtype.profiling.record import FILE, RecordWriter, Workload, load_record, profile_record
from wildtype.profiling.trace_analysis import OperatorCounts, OperatorTotal, Read
from wildtype.training.phase_recorder import PhaseRecorder

WORK = Workload("cell_transformer", "tiny", 24, 2, 80, 1000, 64, 4)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def recorded(seconds, cpu=None, *, rest=0.0, steps=3, warm_up=0):
    """Steps of known seconds per phase."""
    wall, own = Clock(), Clock()
    recorder = PhaseRecorder(warm_up=warm_up, clock=wall, cpu_clock=own)
    with recorder.listening():
        for _ in range(steps):
            recorder.begin()
            for name, spent in seconds.items():
                with phase(name):
                    wall.now += spent
                    own.now += (cpu or seconds)[name]
            wall.now += rest
        recorder.finish()
    return recorder


def record(seconds, name="run", *, counts=None, work=WORK, **settings):
    return profile_record(recorded(seconds, **settings), work, name=name, counts=counts)


def counts(phase, operators, reads=0.0, mib=0.0):
    totals = {name: OperatorTotal(*total) for name, total in operators.items()}
    if mib:
        next(iter(totals.values())).allocated_mib = mib
    found = {Read("model.py:7 in forward", "aten::item", phase, False): reads} if reads else {}
    return OperatorCounts({phase: totals}, found)


def test_a_record_holds_exclusive_means_and_the_rest():
    found = record({"fetch": 1.0, "head": 2.0, "backward": 4.0}, rest=1.0)
    assert found["seconds_per_step"] == {"mean": 8.0, "median": 8.0, "p95": 8.0}
    assert {name: row["mean"] for name, row in found["phases"].items()} == {
        "fetch": 1.0,
        "head": 2.0,
        "backward": 4.0,
    }
    assert found["unattributed"] == {"mean": 1.0, "share": 0.125}
    assert (found["steps"], found["complete"], found["counters"]) == (3, True, None)
    assert [piece["phase"] for piece in found["timeline"][-1] if piece["end"] > piece["start"]] == [
        "fetch",
        "head",
        "backward",
        "unattributed",
    ]
    assert 0 <= found["overhead_share"] < 0.01


def test_a_run_that_is_killed_leaves_a_record_that_can_be_read(tmp_path):
    recorder = recorded({"head": 1.0}, steps=2, warm_up=5)
    writer = RecordWriter(tmp_path / FILE, recorder, WORK, name="killed", execution="training", every=1e9)
    writer.step()
    assert not (tmp_path / FILE).exists()
    writer.every = 0.0
    writer.step()
    found = load_record(tmp_path)
    assert (found["complete"], found["steps"], found["name"]) == (False, 0, "killed")
    with pytest.raises(ConfigError, match="profile of 'killed' has no timed step"):
        compare_profiles(found, found)


def test_files_that_are_no_records(tmp_path):
    with pytest.raises(ConfigError, match="there is no profile at"):
        load_record(tmp_path)
    for text, said in (
        ("{", "is damaged"),
        ("[]", "no profile of format 1"),
        ('{"format": 1}', "no profile"),
    ):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(ConfigError, match=said):
            load_record(tmp_path / FILE)
    with pytest.raises(ConfigError, match="one profile only"):
        compare_profiles(record({"head": 1.0}))


def test_a_comparison_attributes_the_gap_to_phases_and_states_the_rest():
    base = record({"fetch": 1.0, "head": 2.0}, "base", rest=1.0)
    slow = record({"fetch": 1.0, "head": 8.0, "logging": 1.0}, "slow", rest=2.0)
    gap = compare_profiles(base, slow)[0]
    assert gap.step == {"base": 4.0, "other": 12.0, "ratio": 3.0, "difference": 8.0}
    shares = {row["phase"]: row["share"] for row in gap.phases}
    assert shares == {"head": 0.75, "logging": 0.125, "fetch": 0.0}
    assert gap.unexplained["share"] == 0.125
    assert gap.epoch["ratio"] == 3.0
    assert [(cause.phase, cause.share) for cause in gap.causes] == [
        ("head", pytest.approx(0.75)),
        ("logging", pytest.approx(0.125)),
    ]
    assert gap.sentence().startswith(
        "slow takes 3.00 times as long as base per epoch; 75% of it: head, 8.00 s"
    )
    assert json.loads(json.dumps(gap.to_json()))["causes"][0]["phase"] == "head"


def test_more_steps_count_against_the_time_of_each():
    base = record({"head": 4.0}, "base")
    work = Workload("cell_transformer", "tiny", 24, 2, 80, 1000, 4, 64)
    small = record({"head": 1.0}, "small", work=work)
    gap = compare_profiles(base, small)[0]
    assert gap.epoch["ratio"] == 4.0
    first, last = gap.causes[0], gap.causes[-1]
    assert (first.phase, first.kind, first.share) == (None, "steps", pytest.approx(2.0))
    assert first.evidence == "64 steps per epoch instead of 4, of 4 mutants instead of 64"
    assert (last.phase, last.share) == ("head", pytest.approx(-1.0))


@given(
    st.dictionaries(st.sampled_from(["fetch", "head", "loss", "backward"]), st.floats(0.1, 10), min_size=1),
    st.dictionaries(st.sampled_from(["fetch", "head", "loss", "backward"]), st.floats(0.1, 10), min_size=1),
    st.floats(0.0, 1.0),
)
def test_shares_of_phases_and_the_rest_sum_to_the_gap(base, other, rest):
    gap = compare_profiles(record(base, rest=rest), record(other))[0]
    difference = sum(row["difference"] for row in gap.phases) + gap.unexplained["difference"]
    assert difference == pytest.approx(gap.step["difference"], abs=1e-9)
    if abs(gap.step["difference"]) > 1e-3:
        shares = sum(row["share"] for row in gap.phases) + gap.unexplained["share"]
        assert shares == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "slow", "cpu", "base_counts", "slow_counts", "said"),
    [
        ("waiting", 3.0, 1.0, None, None, "stood still for 2.00 s"),
        ("python", 3.0, 3.0, None, None, "operators were not counted"),
        (
            "scalar reads",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5)}),
            counts("head", {"aten::mm": (4.0, 0.5), "aten::item": (64.0, 0.1)}, reads=64.0),
            "64 more scalar reads of tensors per step, most at model.py:7 in forward",
        ),
        (
            "repeated",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5), "aten::add": (2.0, 0.1)}, reads=2.0),
            counts("head", {"aten::mm": (12.0, 1.5), "aten::add": (6.0, 0.3)}, reads=6.0),
            "the same operators 3 times",
        ),
        (
            "more operators",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5)}),
            counts("head", {"aten::index": (90.0, 1.0), "aten::mm": (4.0, 0.5)}),
            "94 operators instead of 4, most of all aten::index",
        ),
        (
            "larger operands",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5)}),
            counts("head", {"aten::mm": (4.0, 2.5)}, mib=8.0),
            "aten::mm takes longer, 8.0 MiB more are allocated",
        ),
        (
            "more operators",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5)}, reads=1.0),
            counts("head", {"aten::index": (900.0, 1.0), "aten::mm": (4.0, 0.5)}, reads=24.0),
            "904 operators instead of 4",  # the reads are more, too, but not what takes so long
        ),
        (
            "python",
            3.0,
            3.0,
            counts("head", {"aten::mm": (4.0, 0.5)}),
            counts("head", {"aten::mm": (4.0, 0.5)}),
            "between the operators",
        ),
    ],
)
def test_what_a_slower_phase_does_more_of(kind, slow, cpu, base_counts, slow_counts, said):
    base = record({"head": 1.0}, "base", counts=base_counts)
    other = record({"head": slow}, "slow", cpu={"head": cpu}, counts=slow_counts)
    for gap in (compare_profiles(base, other)[0], compare_profiles(other, base)[0]):
        assert gap.causes[0].kind == kind
        assert said in gap.causes[0].evidence


def test_fewer_busy_threads_and_a_gpu_are_no_waiting():
    base = record({"head": 1.0}, "base", cpu={"head": 2.0})
    slow = record({"head": 1.8}, "slow", cpu={"head": 1.8})
    assert compare_profiles(base, slow)[0].causes[0].kind == "python"
    base, slow = record({"head": 1.0}, cpu={"head": 0.1}), record({"head": 5.0}, cpu={"head": 0.1})
    assert compare_profiles(base, slow)[0].causes[0].kind == "waiting"
    for each in (base, slow):
        each["clock"] = "gpu"
    assert compare_profiles(base, slow)[0].causes[0].kind == "python"


def test_runs_that_take_the_same_time_have_no_causes():
    gap = compare_profiles(record({"head": 1.0}), record({"head": 1.01}))[0]
    assert gap.causes == []
    assert gap.sentence() == "run and run take the same time."


def test_a_record_of_a_folder_and_of_its_file_are_the_same(tmp_path: Path):
    (tmp_path / FILE).write_text(json.dumps(record({"head": 1.0}), default=float))
    assert load_record(tmp_path) == load_record(tmp_path / FILE)


# ------------------------------------------------------------------------------ a machine with other jobs


def busy(found, *, delay=None, probe=1.0, **load):
    """A record as if other jobs had run beside it, with the seconds per phase that they took."""
    found["load"] = {
        "cores": 2, "threads": 1, "own_cores": 0.5, "other_cores": 1.5, "load": 4.0, "put_off": 0.5,
        "probe": probe, "busy": True, **load,
    }  # fmt: skip
    for name, seconds in (delay or {}).items():
        for row, key in ((found["phases"][name], "mean"), (found["steady"]["phases"][name], "seconds")):
            row[key] += seconds
            row["delay"] += seconds
        found["seconds_per_step"]["mean"] += seconds
    return found


def test_what_other_jobs_took_is_left_out_and_said():
    base = busy(record({"head": 1.0, "backward": 2.0}, "base"), delay={"backward": 3.0})
    slow = busy(record({"head": 4.0, "backward": 2.0}, "slow"), delay={"head": 0.5})
    gap = compare_profiles(base, slow)[0]
    assert gap.step == {"base": 3.0, "other": 6.0, "ratio": 2.0, "difference": 3.0}
    assert [(cause.phase, cause.share) for cause in gap.causes] == [("head", pytest.approx(1.0))]
    assert gap.sentence().startswith("slow takes 2.00 times as long as base per epoch; 100% of it: head")
    assert len(gap.remarks) == 2
    assert gap.remarks[0].startswith(
        "base was measured on a busy machine: other processes used 1.5 of 2 cores"
    )


def test_a_processor_that_is_shared_is_slower_in_all_phases_and_no_cause():
    base = busy(record({"head": 1.0, "backward": 2.0}, "base"), probe=1.0)
    slow = busy(record({"head": 1.5, "backward": 3.0}, "slow"), probe=1.5)
    gap = compare_profiles(base, slow)[0]
    assert gap.causes == []
    assert gap.sentence() == "slow and base take the same time."
    assert "arithmetic took 1.50 times as long as in the other run" in gap.remarks[1]
    # Without another job the run slows its own processor down, which is no excuse.
    base["load"]["busy"] = slow["load"]["busy"] = False
    gap = compare_profiles(base, slow)[0]
    assert gap.epoch["ratio"] == 1.5
    assert gap.remarks == []


def test_a_difference_within_the_noise_is_no_cause():
    base, slow = record({"head": 1.0, "loss": 1.0}, "base"), record({"head": 1.2, "loss": 1.0}, "slow")
    for each in (base, slow):
        each["steady"]["sd"].update({"": 0.3, "head": 0.3})
    gap = compare_profiles(base, slow)[0]
    assert gap.noise == pytest.approx(2 * (2 * 0.3**2 / 3) ** 0.5)
    assert gap.causes == []
    assert gap.sentence() == (
        "slow and base differ by less than the noise of the runs (200.00 ms per step, noise 489.90 ms)."
    )
    for each in (base, slow):
        each["steady"]["sd"].update({"": 0.03, "head": 0.03})
    assert [cause.phase for cause in compare_profiles(base, slow)[0].causes] == ["head"]


def test_one_long_step_is_an_accident():
    def steps(long):
        clock = Clock()
        recorder = PhaseRecorder(warm_up=0, clock=clock, cpu_clock=clock)
        with recorder.listening():
            for step in range(10):
                recorder.begin()
                with phase("head"):
                    clock.now += 50.0 if step == 4 and long else 1.0 + step / 100
            recorder.finish()
        return profile_record(recorder, WORK, name="run")

    assert steps(True)["phases"]["head"]["mean"] > 5
    assert compare_profiles(steps(False), steps(True))[0].causes == []


def test_threads_that_put_each_other_off_are_the_runs_own():
    base = record({"head": 1.0, "backward": 2.0}, "base")
    base["load"] = {"cores": 2, "threads": 1, "own_cores": 1.0, "other_cores": 0.0, "busy": False}
    slow = record({"head": 1.0, "backward": 2.0}, "slow")
    slow = busy(
        slow, delay={"head": 1.0, "backward": 4.0}, own_cores=1.9, other_cores=0.0, threads=16, busy=False
    )
    gap = compare_profiles(base, slow)[0]
    (cause,) = gap.causes
    assert (cause.phase, cause.kind, cause.share) == (None, "threads", pytest.approx(1.0))
    assert cause.evidence.startswith("16 threads on 2 cores instead of 1, which take each other's processors")


def test_the_collector_names_itself_and_its_place():
    base = record({"head": 1.0}, "base")
    slow = record({"head": 1.0, "garbage collector": 9.0}, "slow")
    slow["collections"] = [{"generation": 2, "where": "a.py:3 in f", "calls": 1.0, "seconds": 9.0}]
    (cause,) = compare_profiles(base, slow)[0].causes
    assert (cause.phase, cause.kind) == ("garbage collector", "garbage collector")
    assert cause.evidence.endswith(": 1 full collections per step instead of 0, at a.py:3 in f")


def test_time_in_no_phase_is_a_cause_and_sampled_it_has_a_place():
    base, slow = record({"head": 1.0}, "base"), record({"head": 1.0}, "slow", rest=9.0)
    (cause,) = compare_profiles(base, slow)[0].causes
    assert (cause.phase, cause.kind) == ("unattributed", "not sampled")
    slow["phases"]["between phases"] = {"mean": 8.9, "cpu": 8.9, "thread": 8.9, "delay": 0.0}
    slow["unattributed"]["mean"] = 0.1
    slow["places"] = {"between phases": [place("f", 8.9, 0, g=8.9), place("g", 8.9, 1)]}
    (cause,) = compare_profiles(base, slow)[0].causes
    assert (cause.phase, cause.kind) == ("between phases", "waiting")
    assert cause.evidence.endswith(", at m.py:7 in g")


def place(name, seconds, depth, **leaves):
    leaves = {f"m.py in {leaf}": value for leaf, value in (leaves or {name: seconds}).items()}
    return {
        "function": f"m.py in {name}", "where": f"m.py:7 in {name}", "seconds": seconds, "samples": 50,
        "depth": depth, "leaves": leaves,
    }  # fmt: skip


def test_a_new_wrapper_is_not_blamed_for_what_it_calls():
    base, slow = record({"head": 10.0}, "base"), record({"head": 20.0}, "slow")
    base["places"] = {"head": [place("model", 10.0, 0)]}
    slow["places"] = {
        "head": [
            place("wrapper", 20.0, 0, model=10.0, copies=10.0),
            place("model", 10.0, 1),
            place("copies", 10.0, 1),
        ]
    }
    (cause,) = compare_profiles(base, slow)[0].causes
    assert cause.evidence.endswith(", at m.py:7 in copies")
    # An old function that takes longer is named where no new one calls it.
    slow["places"] = {"head": [place("model", 20.0, 0)]}
    (cause,) = compare_profiles(base, slow)[0].causes
    assert cause.evidence.endswith(", at m.py:7 in model")


@pytest.mark.parametrize(
    ("kind", "totals", "said"),
    [
        (
            "copies",
            {"aten::mm": (4.0, 0.5), "aten::clone": (50.0, 1.0)},
            "50 more copies of tensors per step",
        ),
        ("float64", {"aten::mm": (4.0, 2.5, 0.0, 4.0)}, "4 of 4 operators compute in float64"),
        # A handful of operators that take no time do not explain seconds.
        ("python", {"aten::mm": (4.0, 0.5), "aten::detach": (40.0, 0.001)}, "between the operators"),
    ],
)
def test_copies_wide_numbers_and_operators_that_explain_nothing(kind, totals, said):
    base = record({"head": 1.0}, "base", counts=counts("head", {"aten::mm": (4.0, 0.5)}))
    slow = record({"head": 3.0}, "slow", counts=counts("head", totals))
    cause = compare_profiles(base, slow)[0].causes[0]
    assert cause.kind == kind
    assert said in cause.evidence


def test_one_reason_in_several_phases_is_one_cause():
    totals = {"aten::mm": OperatorTotal(4.0, 0.5)}, {"aten::mm": OperatorTotal(4.0, 1.5, 0.0, 4.0)}
    both = [OperatorCounts({name: each for name in ("head", "backward")}, {}) for each in totals]
    base = record({"head": 1.0, "backward": 2.0}, "base", counts=both[0])
    slow = record({"head": 2.0, "backward": 4.0}, "slow", counts=both[1])
    (cause,) = compare_profiles(base, slow)[0].causes
    assert (cause.phase, cause.kind, cause.share) == ("backward", "float64", pytest.approx(1.0))
    assert cause.evidence.endswith("; also head")


def test_another_thread_at_work_is_named():
    base = record({"head": 1.0}, "base")
    slow = record({"head": 3.0}, "slow")
    # The training thread waits for the interpreter's lock, and the process does not.
    slow["steady"]["phases"]["head"]["thread"] = 1.0
    slow["places"] = {"head": [place("model", 3.0, 0)]}
    slow["other_threads"] = {"plugin.py:3 in polls": 40}
    (cause,) = compare_profiles(base, slow)[0].causes
    assert cause.kind == "other threads"
    assert "another thread of this program was at work, at plugin.py:3 in polls" in cause.evidence
