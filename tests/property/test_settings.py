"""Settings from any source are a whole that fits together, or sentences that say what does not."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omega.config import CONFIG_FILE, DAY_MS, Settings, environment_names, load_settings
from omega.errors import SettingsError
from omega.store.postgres.databases import name_of, suffixed

SECRET = "s3cret"
SENTENCE_MAX = 1_000

FIELDS = sorted(Settings.model_fields)
NAMES = st.sampled_from(sorted(environment_names() - {CONFIG_FILE})) | st.sampled_from(
    ["OMEGA_LEASEMS", "OMEGA_", "OMEGA_lease_ms", "OMEGA_\u00e9"]
)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
NUMBERS = (
    "0",
    "1",
    "-1",
    "5001",
    "10000",
    str(DAY_MS),
    "1e3",
    "1.5",
    "1e-320",
    "nan",
    "inf",
    "9" * 25,
)
ODD = ("", " ", "true", "\u0663", "0x10", "1_000", "9" * 5_000, "~nobody-at-all/x", "\udcff", "[1]")
SCHEMES = ("postgresql://", "postgres://", "postgresql:", "mysql://", "")
USERS = ("me", "", "m%65", "m:e")
PASSWORDS = (SECRET, *(SECRET + more for more in ("@x", "%", "%ff", "?", "/", "#")))
HOSTS = ("h", "", "h:1", "h:x", "h:1,i:2", "a..b", "[::1]", "[::1", "%2Frun", "h:99999", "h:0")
PATHS = ("", "/", "/x", "/%00", "/%zz", f"/{'x' * 90}")
QUERIES = ("", "?", "?host=/run", "?port=9", "?host=%FF", "?sslmode=bogus", f"?{SECRET}=1")
URLS = st.builds(
    "{}{}:{}@{}{}{}".format,
    *map(st.sampled_from, (SCHEMES, USERS, PASSWORDS, HOSTS, PATHS, QUERIES)),
)
VALUES = st.sampled_from([*NUMBERS, *ODD]) | TEXTS | URLS
TOML_VALUES = st.sampled_from(
    [
        *NUMBERS,
        *("true", "0xff", "[]", "{}", "{a = 1}", "1979-05-27", "[" * 9_000, "9" * 5_000),
        *(
            '"x"',
            "''",
            '"a\\u0000b"',
            '"a\\nb"',
            "'~nobody-at-all/x'",
            f"'postgresql://{SECRET}@@'",
        ),
    ]
)
LINES = st.builds("{} = {}".format, st.sampled_from([*FIELDS, "leasems", "a.b"]), TOML_VALUES)
FILES = st.lists(LINES | TEXTS, max_size=3).map("\n".join).map(str.encode) | st.binary(max_size=9)
ARGUMENTS = st.dictionaries(
    st.sampled_from([*FIELDS, "leasems"]),
    st.none() | st.booleans() | st.integers() | st.floats() | VALUES | st.lists(st.integers()),
    max_size=3,
)


@contextmanager
def said(environment: Mapping[str, str], file: bytes) -> Iterator[None]:
    """Have these settings in the environment and in the file of the working directory."""
    others = {name: said for name, said in os.environ.items() if not name.startswith("OMEGA_")}
    Path("omega.toml").write_bytes(file)
    with patch.dict(os.environ, {**others, **environment}, clear=True):
        yield


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@given(st.dictionaries(NAMES, VALUES, max_size=3), FILES, ARGUMENTS)
@example({}, b"lease_ms = " + b"[" * 9_000, {})
@example({}, b"lease_ms = " + b"9" * 5_000, {})
@example({}, b"data_dir = 'a\\u0000b'", {})
@example({}, b'data_dir = "a\\u0000b"', {})
@example({"OMEGA_DATA_DIR": "~nobody-at-all/x"}, b"", {})
@example({"OMEGA_DATABASE_URL": f"postgresql://me:{SECRET}@a..b/x"}, b"", {})
@example({"OMEGA_DATABASE_URL": f"postgresql://me:{SECRET}@h/x?host=%FF"}, b"", {})
def test_any_settings_fit_together_or_are_told_to_be_mended(
    environment: dict[str, str], file: bytes, arguments: dict[str, object]
) -> None:
    with said(environment, file):
        try:
            settings = load_settings(**arguments)
        except SettingsError as refusal:
            problems = refusal.problems
        else:
            assert_coherent(settings)
            return

    for problem in problems:
        assert 1 == len(problem.splitlines())
        assert len(problem) < SENTENCE_MAX
        assert "database_url" not in problem.lower() or SECRET not in problem


def assert_coherent(settings: Settings) -> None:
    """What the processes rely on holds."""
    times = [value for name, value in vars(settings).items() if name.endswith("_ms")]
    assert all(isinstance(ms, int) and 0 < ms <= DAY_MS for ms in times)
    assert 2 * settings.heartbeat_interval_ms < settings.lease_ms
    assert settings.rescue_interval_ms <= settings.lease_ms
    assert settings.backoff_initial_ms <= settings.backoff_max_ms
    assert 0.001 <= settings.nodes_speedup <= 1e9
    assert settings.data_dir.is_absolute()
    assert SECRET not in repr(settings.database_url)
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        assert name_of(suffixed(url, "_demo")).endswith("_demo")
