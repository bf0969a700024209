"""Programs as users write them."""

import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.jobs import StepWork
from omega.model.programs import Check, Program, Restart
from omega.workload.spec import parse_specs

FULL = """\
name: report
scheduler: batch
groups:
  - cpu: 1
    command: [python3, -m, report, "--day=1"]
    env:
      TZ: UTC
      DEPTH: "3"
    env_file: /etc/omega/report.env
    image: registry.example/report:7
    user: reports
    working_dir: /srv/report
    timeout: 30m
    stop: {signal: INT, grace: 1m}
    restart: {attempts: 3, within: 5m, delay: 2s}
    check: {http: /health, port: 8080, interval: 5s, timeout: 500ms, failures: 2}
"""
COMMAND = 'command: [python3, -m, report, "--day=1"]'
SMALL = "name: a\nscheduler: b\ngroups: [{cpu: 1, %s}]\n"


def program_of(fields: str) -> Program | None:
    (spec,) = parse_specs(SMALL % fields, "jobs.yaml")
    return spec.groups[0].program


def test_a_full_program_says_all_there_is_to_one() -> None:
    (spec,) = parse_specs(FULL, "jobs.yaml")

    assert spec.groups[0].program == Program(
        command=("python3", "-m", "report", "--day=1"),
        env=(("DEPTH", "3"), ("TZ", "UTC")),
        env_file="/etc/omega/report.env",
        image="registry.example/report:7",
        user="reports",
        working_dir="/srv/report",
        timeout_ms=1_800_000,
        stop_signal="INT",
        stop_grace_ms=60_000,
        restart=Restart(attempts=3, within_ms=300_000, delay_ms=2_000),
        check=Check(port=8080, path="/health", interval_ms=5_000, timeout_ms=500, failures=2),
    )


@pytest.mark.parametrize(
    ("fields", "program"),
    [
        ("command: ['true']", Program(command=("true",))),
        ("command: [a, '']", Program(command=("a", ""))),
        ('command: ["a\\tb\\n"]', Program(command=("a\tb\n",))),
        ("run: 'echo $HOME | wc'", Program(command=("/bin/sh", "-c", "echo $HOME | wc"))),
        ("image: nginx", Program(command=(), image="nginx")),
        ("run: a, image: i", Program(command=("/bin/sh", "-c", "a"), image="i")),
        (
            "run: a, stop: {signal: SIGUSR1}",
            Program(command=("/bin/sh", "-c", "a"), stop_signal="USR1"),
        ),
        ("image: i, stop: {grace: 0}", Program(command=(), image="i", stop_grace_ms=0)),
        ("image: i, check: {tcp: 80}", Program(command=(), image="i", check=Check(port=80))),
        (
            "image: i, check: {run: 'test -e up'}",
            Program(command=(), image="i", check=Check(command=("/bin/sh", "-c", "test -e up"))),
        ),
        (
            "image: i, check: {command: [pg_isready], failures: 1}",
            Program(command=(), image="i", check=Check(command=("pg_isready",), failures=1)),
        ),
        (
            "image: i, restart: {attempts: 2}",
            Program(command=(), image="i", restart=Restart(attempts=2)),
        ),
    ],
)
def test_what_is_not_said_has_a_default(fields: str, program: Program) -> None:
    assert program == program_of(fields)


def test_a_group_that_says_nothing_of_a_program_has_none() -> None:
    assert program_of("memory: 1GiB") is None


def test_a_job_in_steps_and_elastic_workers_may_run_a_program() -> None:
    (in_steps,) = parse_specs(SMALL % "run: a" + "work: {kind: a, steps: 7}\n", "jobs.yaml")
    (elastic,) = parse_specs(SMALL % "run: a" + "workers: {wanted: 1, at_most: 2}\n", "jobs.yaml")

    assert (StepWork("a", 7), True) == (in_steps.work, in_steps.groups[0].program is not None)
    assert elastic.workers is not None
    assert elastic.groups[0].program is not None


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "said"),
    [
        (COMMAND, "command: echo", 5, "command", "it must be a list of words; to have a shell"),
        (COMMAND, "command:", 5, "command", "it has no value"),
        (COMMAND, "command: []", 5, "command", "it must hold at least 1"),
        (COMMAND, "command: ['', a]", 5, "command[0]", "it must not be empty"),
        (COMMAND, "command: [sleep, 5]", 5, "command[1]", "5 is not text; put it in quotes"),
        (COMMAND, 'command: ["a\\0"]', 5, "command[0]", "it holds a NUL character"),
        (COMMAND, f"command: {['a'] * 1_001}", 5, "command", "it must hold no more than 1000"),
        (COMMAND, COMMAND + "\n    run: echo", 6, "run", "there is a command too; leave one"),
        (COMMAND, "run: ' '", 5, "run", "it must not be empty"),
        (COMMAND, 'run: "a\\0"', 5, "run", "it holds a NUL character"),
        ("TZ: UTC", "TZ: 7", 7, "env.TZ", "7 is not text; put it in quotes"),
        ("TZ: UTC", "TZ: 0.5", 7, "env.TZ", "0.5 is not text; put it in quotes"),
        ("TZ: UTC", "TZ: yes", 7, "env.TZ", "true is not text; put it in quotes"),
        ("TZ: UTC", "TZ:", 7, "env.TZ", "it has no value"),
        ("TZ: UTC", "TZ: [a]", 7, "env.TZ", "is not text"),
        ("TZ: UTC", 'TZ: "a\\0"', 7, "env.TZ", "it holds a NUL character"),
        ("TZ: UTC", 'TZ: "\\uD800"', 7, None, "escape"),
        ("TZ: UTC", "OMEGA_X: a", 7, "env.OMEGA_X", "begin with OMEGA_ are reserved"),
        ("TZ: UTC", "1A: a", 7, "env.1A", "letters, digits and _, and begins with no digit"),
        ("TZ: UTC", "'A=B': a", 7, "env.'A=B'", "letters, digits and _"),
        ("TZ: UTC", "Ä: a", 7, "env.Ä", "letters, digits and _"),
        (
            "      TZ: UTC",
            "".join(f"      A{n}: a\n" for n in range(1_000)),
            6,
            "env",
            "more than 1000",
        ),
        ("image: registry.example/report:7", "image: 7", 10, "image", "7 is not text"),
        ("image: registry.example/report:7", "image: ''", 10, "image", "it must not be empty"),
        ("image: registry.example/report:7", 'image: "a\\0"', 10, "image", "cannot be printed"),
        ("user: reports", 'user: "a\\e[1m"', 11, "user", "cannot be printed"),
        ("user: reports", "user: 1000", 11, "user", "1000 is not text; put it in quotes"),
        ("user: reports", "user: " + "x" * 201, 11, "user", "longer than 200 characters"),
        ("/etc/omega/report.env", "[a]", 9, "env_file", "is not text"),
        ("/etc/omega/report.env", "x" * 4_097, 9, "env_file", "longer than 4096 characters"),
        ("/srv/report", "srv", 12, "working_dir", "'srv' is not an absolute path"),
        ("/srv/report", '"/a\\n"', 12, "working_dir", "cannot be printed"),
        ("timeout: 30m", "timeout: 0s", 13, "timeout", "it must be above 0"),
        ("timeout: 30m", "timeout: soon", 13, "timeout", "'soon' is not a duration"),
        ("http: /health, port: 8080", "http: /health", 16, "check.http", "the port is missing"),
        ("http: /health, port: 8080", "port: 8080", 16, "check", "the check says nothing: give"),
        ("http: /health", "tcp: 80", 16, "check.port", "only http takes a port; there is tcp"),
        ("http: /health", "tcp: 80, http: /", 16, "check.tcp", "there is http too; leave one"),
        ("http: /health", "http: health", 16, "check.http", "'health' is no path such as /health"),
        ("http: /health", "http: /a b", 16, "check.http", "'/a b' is no path"),
        ("http: /health", "http: ''", 16, "check.http", "'' is no path such as"),
        ("port: 8080", "port: 65536", 16, "check.port", "65535"),
        ("port: 8080", "port: '80'", 16, "check.port", "whole number"),
        ("http: /health, port: 8080", "command: ['']", 16, "check.command[0]", "must not be empty"),
        ("http: /health, port: 8080", "command: a", 16, "check.command", "a list of words"),
        ("interval: 5s", "interval: 0", 16, "check.interval", "it must be above 0"),
        ("timeout: 500ms", "timeout: 2h", 16, "check.timeout", "more than 60 minutes"),
        ("failures: 2", "failures: 0", 16, "check.failures", "1"),
        ("failures: 2", "status: 200", 16, "check.status", "no such field"),
        (
            "signal: INT",
            "signal: STOP",
            14,
            "stop.signal",
            "'STOP' is not one of the signals TERM,",
        ),
        ("signal: INT", "signal: 9", 14, "stop.signal", "9 is not one of the signals TERM,"),
        ("signal: INT", "sinal: INT", 14, "stop.sinal", "did you mean 'signal'?"),
        ("grace: 1m", "grace: 61m", 14, "stop.grace", "'61m' is more than 60 minutes"),
        ("grace: 1m", "grace: null", 14, "stop.grace", "it has no value"),
        ("attempts: 3, ", "", 15, "restart.attempts", "this field must be given"),
        ("attempts: 3", "attempts: 1001", 15, "restart.attempts", "1001 is more than 1000"),
        ("attempts: 3", "attempts: -1", 15, "restart.attempts", "-1 is less than 0"),
        ("within: 5m", "within: 0", 15, "restart.within", "it must be above 0"),
        ("delay: 2s", "dely: 2s", 15, "restart.dely", "did you mean 'delay'?"),
        ("cpu: 1", "cpu: 1\n    duration: 5m", 5, "duration", "a task ends when its program does"),
    ],
)
def test_what_is_wrong_with_a_program_is_told(
    old: str, new: str, line: int, field: str | None, said: str
) -> None:
    assert old in FULL

    with pytest.raises(BadInput) as caught:
        parse_specs(FULL.replace(old, new, 1), "jobs.yaml")

    where = None if field is None else f"groups[0].{field}"
    assert ("jobs.yaml", line, where) == (caught.value.file, caught.value.line, caught.value.field)
    assert said in caught.value.sentence


@pytest.mark.parametrize(
    "field",
    [
        "env: {A: a}",
        "env_file: a",
        "user: a",
        "working_dir: /a",
        "timeout: 1s",
        "stop: {grace: 1s}",
        "restart: {attempts: 1}",
    ],
)
def test_without_a_command_nothing_is_said_of_how_it_runs(field: str) -> None:
    with pytest.raises(BadInput, match="the command is missing") as caught:
        program_of(field)

    assert f"groups[0].{field.split(':', maxsplit=1)[0]}" == caught.value.field


def test_a_job_with_phases_runs_no_program() -> None:
    elastic = "workers: {wanted: 1, at_most: 2}\nphases: [{name: a, activities: 1, duration: 1s}]\n"

    with pytest.raises(BadInput, match="so its workers run no program") as caught:
        parse_specs(SMALL % "run: a" + elastic, "jobs.yaml")

    assert (3, "groups[0]") == (caught.value.line, caught.value.field)


def test_a_program_counts_towards_the_length_of_its_job() -> None:
    with pytest.raises(BadInput, match=r"the job is .* bytes long as it is stored"):
        program_of(f"run: '{'x' * LIMITS.wire_bytes_max}'")
