from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wildtype.errors import ConfigError, OutputError
from wildtype.experiments.slurm import script, submit, without_slurm_options
from wildtype.experiments.slurm_presets import Preset

STRANGE = [
    "train",
    "data=my screen",
    "name=it's $HOME",
    'a="b"',
    "gène=ΔYAL",
    "two\nlines",
    "",
    "--x=*;#&|`id`",
]

# Stand-ins for Slurm's programs and for `wildtype`: what starts what, in which folder, with which words.
SRUN = """#!/bin/sh
while :; do case "$1" in --output|--error) shift 2;; --*) shift;; *) break;; esac; done
exec "$@"
"""
SBATCH = """#!/bin/sh
[ "$*" = --parsable ] || exit 2
cat > "$(dirname "$0")/submitted"
echo "4711;north"
"""
WILDTYPE = """#!/bin/sh
out="$(dirname "$0")/called"
pwd > "$out"
printf '%s\\0' "$@" >> "$out"
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login node: its programs in ``bin``, the working directory ``my work``."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "my work").mkdir()
    for name, text in {"srun": SRUN, "sbatch": SBATCH, "wildtype": WILDTYPE}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.chdir(tmp_path / "my work")
    return tmp_path


def called(cluster: Path) -> tuple[str, list[str]]:
    folder, _, words = (cluster / "bin" / "called").read_text().partition("\n")
    return folder, words.split("\0")[:-1]


def directives(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#SBATCH")]


def test_the_whole_script(cluster: Path) -> None:
    preset = Preset(
        partition="gpu long",
        account="yeast",
        qos="high",
        constraint="a&b",
        nodes=2,
        gpus=3,
        gpu_type="a100",
        cpus=6,
        memory_gib=48,
        time="1-02:30:01",
        mail="me@lab.org",
        extra=("--exclusive", "--comment=a b"),
        setup=("module load cuda",),
        prefix="apptainer exec 'my image.sif'",
    )
    work = cluster / "my work"
    text = script(["profile", "step", "seed=1"], preset, directory=work, folder=Path("logs"))
    assert text.splitlines() == [
        "#!/bin/bash",
        "#SBATCH --job-name=wildtype-profile-step",
        "#SBATCH --partition='gpu long'",
        "#SBATCH --account=yeast",
        "#SBATCH --qos=high",
        "#SBATCH --constraint='a&b'",
        "#SBATCH --time=1591",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=3",
        "#SBATCH --cpus-per-task=6",
        "#SBATCH --gpus-per-node=a100:3",
        "#SBATCH --mem=48G",
        "#SBATCH --mail-user=me@lab.org",
        "#SBATCH --mail-type=END,FAIL",
        "#SBATCH --exclusive",
        "#SBATCH --comment='a b'",
        f"#SBATCH --output='{work}/logs/%j_0_log.out'",
        f"#SBATCH --error='{work}/logs/%j_0_log.err'",
        "#SBATCH --open-mode=append",
        "",
        f"cd '{work}' || exit 1",
        "module load cuda",
        "",
        f"srun --unbuffered --output '{work}/logs/%j_%t_log.out' --error '{work}/logs/%j_%t_log.err' "
        f"--cpus-per-task=6 --kill-on-bad-exit=1 apptainer exec 'my image.sif' {cluster}/bin/wildtype "
        f"profile step seed=1",
    ]


def test_a_shell_elsewhere_runs_the_same_words_in_the_folder_of_submission(cluster: Path) -> None:
    text = submit(STRANGE, Preset(prefix="env -u X"), folder=Path("logs"), dry_run=True)
    spool = cluster / "spool"
    spool.mkdir()
    (spool / "slurm_script").write_text(text, encoding="utf-8")
    subprocess.run(["bash", "slurm_script"], cwd=spool, check=True)
    assert called(cluster) == (str(cluster / "my work"), STRANGE)


def test_a_folder_that_is_gone_stops_the_job(cluster: Path) -> None:
    text = script(["train"], Preset(), directory=cluster / "gone", folder=Path("logs"))
    assert subprocess.run(["bash", "-c", text], capture_output=True).returncode == 1
    assert not (cluster / "bin" / "called").exists()


def test_a_dry_run_needs_no_slurm_and_leaves_nothing(cluster: Path) -> None:
    (cluster / "bin" / "sbatch").unlink()
    text = submit(["train"], Preset(), folder=Path("logs"), dry_run=True)
    assert text == script(["train"], Preset(), directory=cluster / "my work", folder=Path("logs"))
    assert list((cluster / "my work").iterdir()) == []


WORDS = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), max_size=4
)


@given(words=WORDS)
@example(words=STRANGE)
def test_words_survive_the_shell(words: list[str]) -> None:
    words = ["train", "--", *words]  # behind -- nothing is taken for an option of the submission
    text = script(words, Preset(program="wildtype"), directory=Path("/w"), folder=Path("/l"))
    line = text[text.index("srun --unbuffered") :]
    assert shlex.split(line)[-len(words) - 1 :] == ["wildtype", *words]


@pytest.mark.parametrize(
    ("gpus", "kind", "asked", "processes"),
    [(0, "", [], 1), (0, "a100", [], 1), (1, "", ["1"], 1), (4, "h100", ["h100:4"], 4), (7, "", ["7"], 7)],
)
def test_any_number_of_gpus(cluster: Path, gpus: int, kind: str, asked: list[str], processes: int) -> None:
    preset = Preset(gpus=gpus, gpu_type=kind)
    lines = directives(submit(["train"], preset, folder=Path("logs"), dry_run=True))
    assert [line.partition("gpus-per-node=")[2] for line in lines if "--gpu" in line] == asked
    assert f"#SBATCH --ntasks-per-node={processes}" in lines


def test_what_is_not_said_is_left_to_the_cluster(cluster: Path) -> None:
    text = submit(["train"], Preset(), folder=Path("logs"), dry_run=True)
    for name in ("partition", "account", "qos", "constraint", "mail-user", "mail-type", "signal"):
        assert f"--{name}" not in text


def test_the_prefix_of_the_command_line_takes_the_place_of_the_presets(cluster: Path) -> None:
    preset = Preset(prefix="nice -n 5", program="wildtype")
    last = [
        shlex.split(submit(["train"], preset, folder=Path("l"), prefix=prefix, dry_run=True).splitlines()[-1])
        for prefix in ("", "apptainer exec --nv 'a b.sif'")
    ]
    assert last[0][-5:] == ["nice", "-n", "5", "wildtype", "train"]
    assert last[1][-6:] == ["apptainer", "exec", "--nv", "a b.sif", "wildtype", "train"]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("train --slurm data=x --preset p.yaml --dry-run", "train data=x"),
        ("train --preset=p.yaml --prefix='a --b' --json --slurm", "train --json"),
        ("--debug profile run --prefix 'apptainer exec x' --json", "--debug profile run --json"),
        ("train --slurm -- --slurm --preset=x", "train -- --slurm --preset=x"),
        ("train --slurm --preset", "train"),
        ("train slurm=1 --presets=2", "train slurm=1 --presets=2"),
    ],
)
def test_a_job_does_not_submit_itself(cluster: Path, words: str, kept: str) -> None:
    assert without_slurm_options(shlex.split(words)) == kept.split()
    line = submit(shlex.split(words), Preset(), folder=Path("l"), dry_run=True).splitlines()[-1]
    assert shlex.split(line.partition("bin/wildtype ")[2]) == kept.split()


def test_what_a_dry_run_prints_is_submitted(cluster: Path) -> None:
    preset = Preset(gpus=2, mail="me", extra=("--exclusive",), setup=("export X=1",), prefix="env -u X")
    assert submit([*STRANGE, "--slurm"], preset, folder=Path("logs")) == "4711"
    text = submit([*STRANGE, "--slurm"], preset, folder=Path("logs"), dry_run=True)
    logs = cluster / "my work" / "logs"
    assert (cluster / "bin" / "submitted").read_text() == text
    assert [path.name for path in logs.iterdir()] == ["4711_submission.sh"]
    assert (logs / "4711_submission.sh").read_text() == text
    # As the job would: from the script, somewhere else.
    subprocess.run(["bash", str(logs / "4711_submission.sh")], cwd=cluster, check=True)
    assert called(cluster) == (str(cluster / "my work"), STRANGE)


REQUEUE = Preset(requeue=120)
RUN = ["train", "run.folder=runs/a b"]


def test_a_job_whose_time_is_up_goes_back_into_the_queue(cluster: Path) -> None:
    text = submit(RUN, REQUEUE, folder=Path("logs"), dry_run=True)
    assert {"#SBATCH --requeue", "#SBATCH --signal=TERM@120"} <= set(directives(text))
    asked = cluster / "bin" / "requeued"
    (cluster / "bin" / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> "{asked}"\n')
    (cluster / "bin" / "scontrol").chmod(0o755)

    def job(code: int, **environment: str) -> tuple[int, list[str]]:
        (cluster / "bin" / "wildtype").write_text(f"{WILDTYPE}exit {code}\n")
        done = subprocess.run(
            ["bash"],
            input=text,
            text=True,
            check=False,
            cwd=cluster,
            env={**os.environ, "SLURM_JOB_ID": "4711", **environment},
        )
        return done.returncode, called(cluster)[1]

    assert job(1) == (1, RUN)
    assert not asked.exists()  # an error is an error
    assert job(143) == (143, RUN)
    assert asked.read_text() == "requeue 4711\n"
    assert job(0, SLURM_RESTART_COUNT="1") == (0, [*RUN, "run.requeued=true"])
    assert asked.read_text() == "requeue 4711\n"
    other = submit(["ablate", "ecoli-core"], REQUEUE, folder=Path("logs"), dry_run=True)
    assert "run.requeued" not in other  # goes on by itself


MANY = ["train", "--multirun", "seed=1,2,3", "run.folder=runs/it's"]


def test_runs_of_one_line_are_the_tasks_of_an_array(cluster: Path) -> None:
    preset = Preset(at_once=2, requeue=60)
    text = submit([*MANY, "--slurm"], preset, folder=Path("logs"), dry_run=True, tasks=3)
    assert {"#SBATCH --array=0-2%2", "#SBATCH --requeue"} <= set(directives(text))
    assert "%A_%a_0_log.out" in text
    assert "%j" not in text
    done = subprocess.run(
        ["bash"],
        input=text,
        text=True,
        check=False,
        cwd=cluster,
        env={**os.environ, "SLURM_ARRAY_TASK_ID": "1", "SLURM_RESTART_COUNT": "1"},
    )
    assert done.returncode == 0
    assert called(cluster)[1] == ["train", "--only", "1", *MANY[1:]]  # and goes on by itself
    assert "--array=0-2\n" in submit(MANY, Preset(), folder=Path("logs"), dry_run=True, tasks=3)


def test_an_array_is_submitted_as_one_job(cluster: Path) -> None:
    assert submit(MANY, Preset(at_once=2), folder=Path("logs"), tasks=3) == "4711"
    text = (cluster / "bin" / "submitted").read_text()
    assert "#SBATCH --array=0-2%2" in directives(text)
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "2"}
    subprocess.run(["bash"], input=text, text=True, check=True, cwd=cluster, env=environment)
    assert called(cluster) == (str(cluster / "my work"), ["train", "--only", "2", *MANY[1:]])


def test_a_run_that_could_not_be_found_again_is_not_requeued(cluster: Path) -> None:
    with pytest.raises(ConfigError, match=r"name it with run\.folder="):
        submit(["train", "seed=1"], REQUEUE, folder=Path("logs"), dry_run=True)


def test_a_signal_of_the_preset_is_kept(cluster: Path) -> None:
    for requeue in (0, 120):
        preset = Preset(extra=("--signal=USR1@30",), requeue=requeue)
        text = submit(RUN, preset, folder=Path("logs"), dry_run=True)
        assert [line for line in directives(text) if "--signal" in line] == ["#SBATCH --signal=USR1@30"]


@pytest.mark.parametrize("program", ["sbatch", "srun"])
def test_no_slurm_here(cluster: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    (cluster / "bin" / program).unlink()
    monkeypatch.setenv("PATH", str(cluster / "bin"))
    with pytest.raises(ConfigError, match=f"no {program} on this machine.*login node"):
        submit(["train"], Preset(), folder=Path("logs"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("echo 'sbatch: error: invalid partition: gpuu\nand more' >&2; exit 1", "invalid partition: gpuu$"),
        ("exit 3", "sbatch ended with code 3$"),
        ("exit 0", "sbatch ended with code 0$"),
    ],
)
def test_a_refusal_says_why(cluster: Path, answer: str, reason: str) -> None:
    (cluster / "bin" / "sbatch").write_text(f"#!/bin/sh\n{answer}\n")
    with pytest.raises(ConfigError, match=f"not submitted: .*{reason}"):
        submit(["train"], Preset(), folder=Path("logs"))
    assert list((cluster / "my work" / "logs").iterdir()) == []


def test_logs_that_cannot_be_written(cluster: Path) -> None:
    (cluster / "my work" / "logs").write_text("")
    with pytest.raises(OutputError, match="a file of that name is in the way"):
        submit(["train"], Preset(), folder=Path("logs"))
    assert not (cluster / "bin" / "submitted").exists()


def test_no_program_and_no_place_for_logs(cluster: Path) -> None:
    with pytest.raises(ConfigError, match="without %"):
        submit(["train"], Preset(), folder=Path("100%j"), dry_run=True)
    (cluster / "bin" / "wildtype").unlink()
    with pytest.raises(ConfigError, match=r"bin/wildtype' for the job to call"):
        submit(["train"], Preset(), folder=Path("logs"), dry_run=True)
