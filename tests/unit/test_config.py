"""Settings come from four sources, and are judged as a whole."""

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from pydantic import ValidationError

from omega.config import (
    DAY_MS,
    UNREADABLE_URL,
    URLS,
    Settings,
    environment_names,
    load_settings,
)
from omega.errors import SettingsError
from omega.limits import LIMITS


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, with no setting in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in environment_names():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write_toml(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "omega.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def problems_of(**said: Any) -> tuple[str, ...]:  # noqa: ANN401 - wrong types are the point
    with pytest.raises(SettingsError) as caught:
        load_settings(**said)
    return caught.value.problems


def test_the_users_own_folder_is_used_when_nothing_is_said() -> None:
    settings = load_settings()

    assert settings.database_url is None
    assert platformdirs.user_data_path("omega") == settings.data_dir


def test_each_source_gives_way_to_the_next(
    monkeypatch: pytest.MonkeyPatch, write_toml: Callable[..., Path]
) -> None:
    write_toml("lease_ms = 11_000\npoll_interval_ms = 11\nattempts_max = 11\n")
    monkeypatch.setenv("OMEGA_POLL_INTERVAL_MS", "22")
    monkeypatch.setenv("OMEGA_ATTEMPTS_MAX", "22")
    settings = load_settings(attempts_max=33)

    assert (11_000, 22, 33) == (
        settings.lease_ms,
        settings.poll_interval_ms,
        settings.attempts_max,
    )


def test_a_source_leaves_out_what_it_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_LEASE_MS", "12000")
    monkeypatch.setenv("OMEGA_DATABASE_URL", "")
    settings = load_settings(lease_ms=None)

    assert 12_000 == settings.lease_ms
    assert settings.database_url is None


def test_the_environment_names_another_file(
    monkeypatch: pytest.MonkeyPatch, write_toml: Callable[..., Path]
) -> None:
    write_toml("lease_ms = 11_000")
    monkeypatch.setenv("OMEGA_CONFIG_FILE", str(write_toml("lease_ms = 12_000", "other.toml")))

    assert 12_000 == load_settings().lease_ms


def test_a_file_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_CONFIG_FILE", "absent.toml")

    assert ("OMEGA_CONFIG_FILE names absent.toml, and there is no such file",) == problems_of()


def test_a_file_that_is_not_toml_is_told(write_toml: Callable[..., Path]) -> None:
    write_toml("lease_ms: 5000")
    (problem,) = problems_of()

    assert problem.startswith("omega.toml is not TOML: ")
    assert "line 1" in problem


def test_an_unknown_name_in_the_environment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_LEASEMS", "5000")
    monkeypatch.setenv("OMEGA_ZEBRA", "5000")

    assert (
        "OMEGA_LEASEMS in the environment is no setting; did you mean 'OMEGA_LEASE_MS'?",
        "OMEGA_ZEBRA in the environment is no setting",
    ) == problems_of()


def test_an_unknown_name_in_the_file_is_told(write_toml: Callable[..., Path]) -> None:
    write_toml("leasems = 5000")

    assert ("leasems in omega.toml is no setting; did you mean 'lease_ms'?",) == problems_of()


def test_an_unknown_argument_is_told() -> None:
    assert ("leasems (as an argument) is no setting; did you mean 'lease_ms'?",) == problems_of(
        leasems=5
    )


def test_each_wrong_value_is_told_with_its_origin(
    monkeypatch: pytest.MonkeyPatch, write_toml: Callable[..., Path]
) -> None:
    write_toml("lease_ms = 0")
    monkeypatch.setenv("OMEGA_POLL_INTERVAL_MS", "soon")
    problems = problems_of(nodes_speedup=0)

    assert 3 == len(problems)
    assert any(p.startswith("lease_ms in omega.toml must be greater than 0") for p in problems)
    assert any(p.startswith("OMEGA_POLL_INTERVAL_MS in the environment") for p in problems)
    assert (
        "nodes_speedup (as an argument) must be greater than or equal to 0.001, not 0" in problems
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"lease_ms": 4_000}, "must outlast two heartbeats"),
        ({"rescue_interval_ms": 10_001}, "wait longer for their rescue"),
        ({"backoff_initial_ms": 10_001}, "must not exceed backoff_max_ms"),
        ({"statement_timeout_ms": 5_000}, "healthy commits are cut off"),
        ({"jobs_per_lease_max": 257}, "fit one transaction"),
        ({"database_url": "mysql://localhost"}, "must start with postgresql:// or postgres://"),
    ],
)
def test_settings_that_contradict_each_other_are_told(said: dict[str, Any], reason: str) -> None:
    (problem,) = problems_of(**said)

    assert next(iter(said)) in problem
    assert reason in problem


def test_all_contradictions_are_told_at_once() -> None:
    assert 3 == len(
        problems_of(lease_ms=4_000, backoff_initial_ms=10_001, rescue_interval_ms=5_000)
    )


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@db/omega", "postgres://me:s3cret@db"])
def test_the_database_url_is_kept_but_never_printed(url: str) -> None:
    settings = load_settings(database_url=url)

    assert settings.database_url is not None
    assert url == settings.database_url.get_secret_value()
    assert "s3cret" not in f"{settings} {settings!r} {settings.model_dump_json()}"


def test_a_database_url_that_is_refused_is_not_printed_either() -> None:
    problems = (*problems_of(database_url="mysql://me:s3cret@db"), *problems_of(database_url=7))

    assert 2 == len(problems)
    assert not any("s3cret" in problem or "7" in problem for problem in problems)


def test_a_home_folder_is_spelled_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMEGA_DATA_DIR", "~/cell")

    assert tmp_path / "cell" == load_settings().data_dir


def test_a_relative_folder_is_spelled_out(tmp_path: Path) -> None:
    assert tmp_path / "cell" == load_settings(data_dir="cell").data_dir


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="such links are passed over there")
def test_a_folder_that_leads_round_in_a_circle_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (problem,) = problems_of(data_dir=tmp_path / "loop" / "cell")

    assert "leads round in a circle" in problem


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().lease_ms = 1  # type: ignore[misc]


def test_every_setting_has_an_environment_name() -> None:
    names = environment_names()

    assert {"OMEGA_DATABASE_URL", "OMEGA_LEASE_MS", "OMEGA_CONFIG_FILE"} <= names
    assert all(name.startswith("OMEGA_") for name in names)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:WRONG%pw99@127.0.0.1:15999/cell",
        "postgresql://boss:WRONG@pw99@127.0.0.1:15999/cell",
        "postgresql://boss:WRONG/pw99@127.0.0.1:15999/cell",
        "postgresql://boss:12/WRONG@127.0.0.1:15999/cell",
        "postgresql://boss:WRONG?x@pw99@127.0.0.1:15999/cell",
        "postgresql://boss:WRONG:pw99@127.0.0.1:x/cell",
        "postgresql://boss:WRONG@127.0.0.1:99999/cell",
        "postgresql://boss:WRONG@127.0.0.1:0/cell",
        "postgresql://boss:WRONG@127.0.0.1/cell?port=1x",
        "postgresql://boss:WRONG@127.0.0.1/cell?sslmodus=WRONG",
        "postgresql://boss:WRONG@[::1/cell",
    ],
)
@pytest.mark.parametrize("name", URLS)
def test_a_url_that_cannot_be_read_is_told_without_a_piece_of_it(name: str, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(**{name: url})

    assert (UNREADABLE_URL.format(name.upper()),) == caught.value.problems
    told = "".join(traceback.format_exception(caught.value))
    assert not any(piece in told for piece in ("WRONG@", "WRONG%", "pw99", "sslmodus"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:a%25b%40c%2Fd%3Ae@127.0.0.1:15999/cell",
        "postgresql://boss:a?b@127.0.0.1:15999/cell",
        "postgresql://boss@/cell?host=/var/run/postgresql&port=5433",
        "postgresql://boss:x@[::1]:5432/cell?sslmode=require",
        "postgres://%2Frun%2Fpostgresql/cell",
        "postgresql://",
    ],
)
def test_a_database_url_that_libpq_reads_is_taken(url: str) -> None:
    settings = load_settings(database_url=url)

    assert settings.database_url is not None
    assert url == settings.database_url.get_secret_value()


@pytest.mark.parametrize("name", [n for n in Settings.model_fields if n.endswith("_ms")])
def test_no_time_is_longer_than_a_day(name: str) -> None:
    (problem,) = problems_of(**{name: DAY_MS + 1})

    assert f"{name} (as an argument) must be less than or equal to {DAY_MS}" in problem


def test_no_lease_is_longer_than_the_database_takes() -> None:
    longest = LIMITS.lease_ms_max

    (problem,) = problems_of(lease_ms=longest + 1)

    assert longest == load_settings(lease_ms=longest).lease_ms
    assert f"lease_ms (as an argument) must be less than or equal to {longest}" in problem


def test_a_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    (tmp_path / "omega.toml").write_bytes(b"# caf\xe9\n")

    assert ("omega.toml is not UTF-8 text",) == problems_of()


def test_an_empty_name_of_the_file_is_none(
    monkeypatch: pytest.MonkeyPatch, write_toml: Callable[..., Path]
) -> None:
    write_toml("lease_ms = 11_000")
    monkeypatch.setenv("OMEGA_CONFIG_FILE", "")

    assert 11_000 == load_settings().lease_ms
