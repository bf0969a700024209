"""What `omega sim` refuses: in one sentence that names it, with exit code 2; nothing is written."""

import json
from pathlib import Path

import pytest

from omega.cli.sim import sweep as sim_sweep
from omega.workload import fits
from tests.fixtures.command_line import Omega, Ran, document
from tests.fixtures.job_lists import CELL
from tests.postgres.hostile_words import Command, Parameter, commands

HEAD = "job_id,workload,submit_s,tasks,duration_s,cpus_per_task,mem_gb_per_task"
VERBS = {one.path[1]: one for one in commands() if one.path[0] == "sim"}
NUMERIC = [
    pytest.param(verb, option, id=f"{verb} {option.names[0]}")
    for verb, command in VERBS.items()
    for option in command.parameters
    if option.of in (int, float)
]
NO_NUMBERS = (
    *("nan", "inf", "-inf", "1e300", "-1e300", "1e400", "-1", "", " ", "one", "0x10"),
    *("9" * 30, "9" * 5_000),
)
NO_PLACES = ("", ".", "missing", "missing/file", "a" * 300, "binary", "latin.csv", "empty.csv")
NO_ENDINGS = ("x", "x.txt", "x.jpg", "x.png.gz", ".png", "png", "")
DRAWS = [
    verb
    for verb, command in VERBS.items()
    if any("--plot" in one.names for one in command.parameters)
]


@pytest.fixture(autouse=True)
def _in_a_folder(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a job list and files that are none."""
    folder = jobs.parent
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "latin.csv").write_bytes(b"n\xe4me")
    (folder / "empty.csv").touch()
    monkeypatch.chdir(folder)


def asked(verb: str) -> list[str]:
    """Return a command line that would do."""
    return {
        "run": ["run", "--jobs", "jobs.csv"],
        "sweep": ["sweep", "--jobs", "jobs.csv", "--vary", "assignment=dealt"],
        "fit": ["fit", "jobs.csv"],
    }[verb]


def refused(omega: Omega, *words: object) -> str:
    """Run it, and return the one sentence that it ends with."""
    before = sorted(Path().iterdir())
    ran = omega("sim", *words)

    assert 2 == ran.code, ran.err
    assert "" == ran.out
    assert before == sorted(Path().iterdir())
    return only_sentence(ran)


def only_sentence(ran: Ran) -> str:
    assert ran.err.startswith("omega: ")
    assert 1 == ran.err.count("\n"), ran.err
    return ran.err.removeprefix("omega: ").strip()


@pytest.mark.parametrize(("verb", "option"), NUMERIC)
def test_what_is_no_number_within_bounds_is_refused(
    omega: Omega, verb: str, option: Parameter
) -> None:
    assert option.lowest is not None
    assert option.highest is not None
    for value in (*NO_NUMBERS, str(option.lowest - 1), str(option.highest * 2 + 1)):
        sentence = refused(omega, *asked(verb), f"{option.names[0]}={value}")

        assert sentence.startswith(f"field {option.names[0]}: ")


@pytest.mark.parametrize(
    "option", [p for p in VERBS["run"].parameters if p.of in (int, float)], ids=lambda p: p.name
)
def test_a_sweep_refuses_what_a_run_refuses(omega: Omega, option: Parameter) -> None:
    name = option.names[0].removeprefix("--")
    for value in NO_NUMBERS:
        sentence = refused(omega, "sweep", "--jobs", "jobs.csv", "--vary", f"{name}=1,{value}")

        assert sentence.startswith(f"field --{name}: ")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_no_number_of_hours_is_told_so(omega: Omega, value: str) -> None:
    sentence = refused(omega, *asked("run"), f"--hours={value}")

    assert "field --hours: it should be a finite number; see omega sim run -h" == sentence


@pytest.mark.parametrize("place", NO_PLACES)
def test_what_is_no_job_list_is_refused(omega: Omega, place: str) -> None:
    for words in (["run", "--jobs", place], ["fit", place]):
        assert place in refused(omega, *words)
    assert refused(omega, "sweep", "--vary", f"jobs=jobs.csv,{place}")


@pytest.mark.parametrize("place", [*NO_PLACES, "jobs.csv"])
def test_what_is_no_trace_is_refused(omega: Omega, place: str) -> None:
    for verb in (["run"], ["sweep", "--vary", "seed=1"]):
        sentence = refused(omega, *verb, "--trace", place)

        assert "this is no folder" in sentence or "no known trace" in sentence


@pytest.mark.parametrize("place", [*NO_PLACES, "jobs.csv"])
def test_what_is_no_sweep_is_not_resumed(omega: Omega, place: str) -> None:
    sentence = refused(omega, *asked("sweep"), "--resume", place)

    assert "it cannot be read: " in sentence or "this is no document of a sweep" in sentence


@pytest.mark.parametrize("place", ["", ".", "missing/file", "a" * 300, "jobs.csv/file"])
def test_what_cannot_be_written_is_refused(omega: Omega, place: str) -> None:
    for verb in ("run", "sweep", "fit"):
        assert "--json" in refused(omega, *asked(verb), "--json", place)
    assert "--to" in refused(omega, "jobs", "W2", "--to", place)
    assert "--to" in refused(omega, *asked("fit"), "--to", place)


@pytest.mark.parametrize("option", ["architecture", "rule", "granularity", "assignment", "law"])
@pytest.mark.parametrize("word", ["", " ", "none", "FIT", "\x1b[2J", "9" * 5_000])
def test_a_word_that_is_not_known_is_refused(omega: Omega, option: str, word: str) -> None:
    verb = "fit" if option == "law" else "run"

    assert f"--{option}" in refused(omega, *asked(verb), f"--{option}={word}")


@pytest.mark.parametrize("pair", ["chance=1", "folder=1", "self=1", "options=1", "=", "a", "jobs="])
def test_what_is_no_option_of_a_trace_is_refused(omega: Omega, pair: str) -> None:
    Path("W2.csv").write_text(Path("jobs.csv").read_text())
    for verb in (["run", "--trace", "."], ["sweep", "--trace", ".", "--vary", "seed=1"]):
        assert refused(omega, *verb, "--trace-option", pair)
    assert refused(omega, "fit", ".", "--trace-option", pair)


@pytest.mark.parametrize(
    "vary",
    [
        "cpus=lin:-1.7e308..1.7e308/3",
        "cpus=log:1e-308..1.7e308/3",
        "machines=lin:1..2/3",
        "hours=",
        "",
        "=1",
        "9" * 5_000,
    ],
)
def test_what_cannot_be_varied_is_refused(omega: Omega, vary: str) -> None:
    assert refused(omega, "sweep", "--jobs", "jobs.csv", "--vary", vary)


def test_a_grid_that_no_memory_holds_is_not_made(omega: Omega) -> None:
    axes = ("t-job-batch", "t-task-batch", "t-job-service", "t-task-service", "cpus", "hours")
    varied = [word for name in axes for word in ("--vary", f"{name}=lin:1..9/1000")]

    assert "more than 100,000 runs" in refused(omega, "sweep", "--jobs", "jobs.csv", *varied)


def test_a_range_of_whole_numbers_is_one_whatever_its_size(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sim_sweep, "Results", lambda _plan, axes, _seeds: seen.append(axes))
    with pytest.raises(AttributeError):
        omega("sim", "sweep", "--vary", "machines=lin:1..1000000/3", "--vary", "cpus=lin:0.1..2/2")

    assert [{"machines": [1, 500_000, 1_000_000], "cpus": [0.1, 2.0]}] == seen


def test_more_failures_than_can_be_held_are_refused(omega: Omega) -> None:
    often = ("--machine-failures-every", 0.001, "--machine-repair", 0.001)
    sentence = refused(omega, *asked("run"), "--machines", 1_000, "--hours", 8_784, *often)

    assert sentence.startswith("field --machine-failures-every: more than 1,000,000 failures")


def test_more_jobs_than_can_be_held_are_not_drawn(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fits, "DRAWN_MAX", 100)

    sentence = refused(omega, *asked("fit"), "--hours", 8_784, "--to", "drawn.csv")
    assert "field --hours: more than 100 jobs would be drawn" == sentence


@pytest.mark.parametrize("verb", DRAWS)
@pytest.mark.parametrize("name", NO_ENDINGS)
def test_a_picture_of_another_kind_is_refused(omega: Omega, verb: str, name: str) -> None:
    sentence = refused(omega, *asked(verb), "--plot", name)

    assert sentence.startswith("field --plot: ")
    assert sentence.endswith(" ends in none of .png, .svg, .pdf")


@pytest.mark.parametrize(
    ("name", "begins"), [("x.png", b"\x89PNG"), ("x.PNG", b"\x89PNG"), ("x.pdf", b"%PDF")]
)
def test_a_picture_is_of_the_kind_that_its_ending_says(
    omega: Omega, name: str, begins: bytes
) -> None:
    ran = omega("sim", *asked("run"), *CELL, "--hours", 0.01, "--plot", name)

    assert 0 == ran.code
    assert Path(name).read_bytes().startswith(begins)


def test_a_picture_may_be_of_vectors(omega: Omega) -> None:
    ran = omega("sim", *asked("fit"), "--plot", "x.svg")

    assert 0 == ran.code
    assert "<svg" in Path("x.svg").read_text()


def test_a_job_that_is_listed_twice_is_refused(omega: Omega) -> None:
    rows = ["7,Batch,1,1,1,1,1", "8,Batch,2,1,1,1,1", "7,Service,3,1,1,1,1"]
    Path("twice.csv").write_text("\n".join([HEAD, *rows]))

    for words in (["run", "--jobs", "twice.csv"], ["fit", "twice.csv"]):
        assert "twice.csv, line 4, field job_id: '7' is there already" == refused(omega, *words)


@pytest.mark.parametrize("audit", [(), ("--audit",)])
def test_all_machines_may_be_down_at_once(omega: Omega, audit: tuple[str, ...]) -> None:
    alone = ("--machines", 1, "--prefill-tasks", 0, "--hours", 0.03)
    down = ("--machine-failures-every", 0.005, "--machine-repair", 1_000, "--plot", "x.png")
    told = document(omega("sim", *asked("run"), *alone, *down, *audit, "--json", "-"))

    assert 0 <= told["summary"]["utilisation"] <= 1
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


def test_tasks_that_ask_for_nothing_are_audited(omega: Omega) -> None:
    Path("none.csv").write_text("\n".join([HEAD, *(f"{n},Batch,{n},2,1,0,0" for n in range(9))]))
    offered = ("--architecture", "two-level", "--machines", 1, "--prefill-tasks", 0)
    ran = omega("sim", "run", "--jobs", "none.csv", *offered, "--hours", 0.01, "--audit")

    assert 0 == ran.code, ran.err


def test_times_that_are_as_good_as_none_are_fitted(omega: Omega) -> None:
    times = ["5e-324", "1e-300", "0", "1e9", "2"]
    rows = [f"{n},Batch,{n},{n + 1},{lasts},1,1" for n, lasts in enumerate(times)]
    Path("tiny.csv").write_text("\n".join([HEAD, *rows]))

    told = document(omega("sim", "fit", "tiny.csv", "--json", "-"))
    json.dumps(told, allow_nan=False)


def test_every_command_is_asked_something() -> None:
    assert {"run", "sweep", "fit"} == set(DRAWS)
    assert {"run", "sweep", "fit", "jobs"} == VERBS.keys()
    assert len(NUMERIC) > 30
    assert isinstance(VERBS["run"], Command)
