"""What the operator may set, merged from four sources and validated as a whole.

Goal     One frozen set of settings for each process, from whichever source they came.
Promise  The TOML file overrides defaults, the environment overrides the file, and explicit
         arguments override the environment. A source overrides only what it names. All problems of
         a check are reported at once, each with the source of the value and the reason. The
         database's URL, with its password, is never printed. Nor are messages of libraries about
         it, which may quote a part of it.
Source   pydantic-settings. The file is `omega.toml` in the working directory, or the one that
         OMEGA_CONFIG_FILE names; a field's environment name is OMEGA_ and its name in capitals.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Annotated, Any, Final, Literal, Self

import platformdirs
import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from omega.errors import SettingsError, did_you_mean, shortened
from omega.limits import LIMITS

ENVIRONMENT_PREFIX = "OMEGA_"
CONFIG_FILE = "OMEGA_CONFIG_FILE"
TASK_VARIABLES = frozenset(
    f"OMEGA_{name}"
    for name in (
        *("JOB", "JOB_NAME", "TASK", "TASKS", "MACHINE", "RESTARTS", "TASK_FOLDER"),
        *("MACHINES", "HOSTFILE"),  # of gangs
        *("STEPS", "STEPS_DONE", "STEP_FILE"),  # of jobs in steps
    )
)
"""What agents tell the programs of tasks, which may run `omega` themselves."""
NOT_SETTINGS = TASK_VARIABLES | {
    CONFIG_FILE,
    "OMEGA_DEBUG",
    "OMEGA_TEST_DATABASE_URL",
    "OMEGA_TRACES",
    "OMEGA_WEB_TOKEN",
}
"""Names with our prefix that are not fields. The last ones are the path of the file, whether the
command line shows tracebacks, for the tests the server and the folder of published traces, and what
opens the page of `omega web`."""

DATABASE_SCHEMES = ("postgresql://", "postgres://")
UNREADABLE_URL: Final = (
    "OMEGA_{} cannot be read; write %, @, / and : in the password as %25, %40, %2F, %3A"
)
URLS: Final = ("database_url", "read_from")
"""The settings that may hold passwords; what they hold is never printed."""
PORT_MAX: Final = 65_535

SPEEDUP_MIN: Final = 0.001
SPEEDUP_MAX: Final = 1e9
"""Outside of this range the end of a task may be a time that no clock can represent."""

DAY_MS: Final = 24 * 60 * 60 * 1_000
Milliseconds = Annotated[int, Field(gt=0, le=DAY_MS)]
"""A time to wait. More than a day is a mistake, and much more overflows when added to a clock."""
LeaseLength = Annotated[int, Field(gt=0, le=LIMITS.lease_ms_max)]


def _folder(path: Path) -> Path:
    """Return the absolute path, with `~` expanded; raise ValueError if that is impossible."""
    if "\0" in str(path):
        raise ValueError("holds a character that no path may")
    try:
        whole = path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("begins with a home folder that is not known") from None
    try:
        whole.resolve()
    except RuntimeError:
        raise ValueError("leads round in a circle of links") from None
    return whole


class Settings(BaseSettings):
    """Everything an operator may decide; `load_settings` makes it."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        env_ignore_empty=True,  # compose files pass an empty string for what is not set
        extra="forbid",
        frozen=True,
        validate_default=True,
    )

    database_url: SecretStr | None = None
    """Any Postgres from 15 on. Without it the embedded Postgres in `data_dir` is used."""
    data_dir: Annotated[Path, AfterValidator(_folder)] = Field(
        default_factory=lambda: platformdirs.user_data_path("omega")
    )
    """The folder in which the embedded Postgres stores the cell."""
    read_from: SecretStr | None = None
    """A standby of the cell's server, on which verbs that only read do so."""
    statement_timeout_ms: Milliseconds = 30_000

    lease_ms: LeaseLength = 10_000
    """How long a job's lease lasts unless a heartbeat renews it."""
    heartbeat_interval_ms: Milliseconds = 2_000
    rescue_interval_ms: Milliseconds = 2_000
    """How often a scheduler looks for expired leases of jobs and machines, and checks its view for
    machines to clear and parked jobs to wake."""
    poll_interval_ms: Milliseconds = 200
    """How often an idle scheduler looks for jobs."""
    jobs_per_lease_max: PositiveInt = 64
    """How many jobs one scheduler leases at a time."""
    queue_order: Literal[
        "fifo",
        "drf",
        "choosy",
        "deadline",
        "deadline-edf",
        "deadline-sjf",
        "deadline-tokens",
    ] = "fifo"
    """Which jobs of the whole queue are leased next, by schedulers that are not told otherwise."""
    share_gap_ms: Milliseconds = 50
    """How often a scheduler with a fair order reads lanes and the view, and how old the sum of what
    tenants use may be then. How often one with an order by start deadlines reads the view."""

    backoff_initial_ms: Milliseconds = 100
    backoff_max_ms: Milliseconds = 10_000
    attempts_max: PositiveInt = 50
    """Attempts in a row that place nothing before a job that loses to others is parked."""
    losers_first: bool = False
    """Whether a job that was refused or found no room is tried again before younger jobs: at once
    after conflicts, after `backoff_initial_ms` if there was no room. The job is then never parked
    for conflicts or for want of room."""

    nodes_speedup: Annotated[float, Field(ge=SPEEDUP_MIN, le=SPEEDUP_MAX, allow_inf_nan=False)] = (
        1.0
    )
    """How many seconds of a task's duration pass on virtual nodes in one second."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, each before those that it overrides."""
        toml = TomlConfigSettingsSource(settings_cls, toml_file=_config_file())
        return init_settings, env_settings, toml

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        if problems := list(self._problems()):
            raise SettingsError(problems)
        return self

    def _problems(self) -> Iterator[str]:
        for name in URLS:
            url: SecretStr | None = getattr(self, name)
            if url is not None:
                yield from _url_problems(name, url.get_secret_value())
        if self.lease_ms <= 2 * self.heartbeat_interval_ms:
            yield (
                f"lease_ms ({self.lease_ms}) must outlast two heartbeats of heartbeat_interval_ms"
                f" ({self.heartbeat_interval_ms}), or one lost packet takes a job from a live"
                " scheduler"
            )
        if self.rescue_interval_ms > self.lease_ms:
            yield (
                f"rescue_interval_ms ({self.rescue_interval_ms}) must not exceed lease_ms"
                f" ({self.lease_ms}), or a dead scheduler's jobs wait longer for their rescue than"
                " for their lease"
            )
        if self.backoff_initial_ms > self.backoff_max_ms:
            yield (
                f"backoff_initial_ms ({self.backoff_initial_ms}) must not exceed backoff_max_ms"
                f" ({self.backoff_max_ms}), for a delay grows from the one to the other"
            )
        if self.statement_timeout_ms <= LIMITS.commit_ms_max:
            yield (
                f"statement_timeout_ms ({self.statement_timeout_ms}) must be longer than a commit"
                f" may take ({LIMITS.commit_ms_max}), or healthy commits are cut off"
            )
        if self.jobs_per_lease_max > LIMITS.jobs_per_transaction_max:
            yield (
                f"jobs_per_lease_max ({self.jobs_per_lease_max}) must not exceed the jobs that fit"
                f" one transaction ({LIMITS.jobs_per_transaction_max})"
            )


def load_settings(**said: object) -> Settings:
    """Return the settings: these arguments, merged with the other sources.

    An argument that is None counts as not given. Raises SettingsError with every problem of the
    first source or check that has any.
    """
    if strangers := list(_unknown_environment_names()):
        raise SettingsError(strangers)
    arguments: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    try:
        return Settings(**arguments)
    except ValidationError as error:
        problems = [_problem(detail, arguments) for detail in error.errors(include_url=False)]
    except TOMLDecodeError as error:
        problems = [f"{_config_file()} is not TOML: {error}"]
    except UnicodeDecodeError:
        problems = [f"{_config_file()} is not UTF-8 text"]
    except ValueError as error:  # a number of thousands of digits, which Python does not read
        problems = [f"{_config_file()} cannot be read: {error}"]
    except RecursionError:
        problems = [f"{_config_file()} is nested too deeply"]
    # Raised outside of `except`: a chained traceback would show the input, perhaps the password.
    raise SettingsError(problems)


def environment_names() -> frozenset[str]:
    """Return the names of all environment variables that the settings know."""
    fields = {f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in Settings.model_fields}
    return frozenset(fields | NOT_SETTINGS)


def _config_file() -> Path:
    named = os.environ.get(CONFIG_FILE)
    if not named:  # compose files pass an empty string for what is not set
        return Path("omega.toml")
    if not Path(named).is_file():
        raise SettingsError([f"{CONFIG_FILE} names {named}, and there is no such file"])
    return Path(named)


def _url_problems(name: str, url: str) -> Iterator[str]:
    """Yield what is wrong with the URL of a database, without quoting any of it."""
    unreadable = UNREADABLE_URL.format(name.upper())
    if not url.startswith(DATABASE_SCHEMES):
        yield f"{name} must start with {' or '.join(DATABASE_SCHEMES)}"
        return
    try:
        said = conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):  # their messages quote the URL
        yield unreadable
        return
    # A character that is not escaped ends the password early. The parser takes the rest of the
    # password for the host, the port or the path, so those are searched for signs of it.
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    ports = [port for port in str(said.get("port") or "").split(",") if port]
    strays = (authority.partition("@")[2], path, str(said.get("host") or "").removeprefix("@"))
    if any("@" in part for part in strays) or not all(map(_is_port, ports)):
        yield unreadable
    elif not all(map(_can_be_asked_for, str(said.get("host") or "").split(","))):
        yield f"{name} names a host that there cannot be"


def _can_be_asked_for(host: str) -> bool:
    """Return whether a host can be looked up by name; folders of sockets always pass."""
    try:
        return host.startswith(("/", "@")) or bool(host.encode("idna")) or not host
    except UnicodeError:
        return False


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= PORT_MAX


def _unknown_environment_names() -> Iterator[str]:
    known = environment_names()
    for name in sorted(os.environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known:
            hint = did_you_mean(name, known, prefix=ENVIRONMENT_PREFIX)
            yield f"{name} in the environment is no setting{hint}"


def _problem(detail: ErrorDetails, arguments: dict[str, Any]) -> str:
    """Return one sentence: what is wrong with one value, and which source it came from."""
    name = str(detail["loc"][0])
    if name in arguments:
        origin = f"{name} (as an argument)"
    elif (variable := f"{ENVIRONMENT_PREFIX}{name.upper()}") in os.environ:
        origin = f"{variable} in the environment"
    else:
        origin = f"{name} in {_config_file()}"
    if detail["type"] == "extra_forbidden":
        return f"{origin} is no setting{did_you_mean(name, Settings.model_fields)}"
    reason = str(detail["msg"]).replace("Input should be", "must be").removeprefix("Value error, ")
    value = "" if name in URLS else f", not {shortened(repr(detail['input']))}"
    return f"{origin} {reason}{value}"
