"""The embedded Postgres starts on demand, is shared, and ends with the last who uses it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from omega.clock import RealClock
from omega.errors import SettingsError, StoreUnavailable
from omega.store.embedded import PACKAGE, EmbeddedPostgres
from omega.store.packaged_postgres import PackagedPostgres

pytestmark = pytest.mark.postgres

Program = Callable[[str], subprocess.Popen[str]]


@pytest.fixture(scope="module")
def used_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for most tests of a worker, for to make one takes longer than most tests."""
    return tmp_path_factory.mktemp("used")


@pytest.fixture
def data_dir(used_data_dir: Path) -> Iterator[Path]:
    """A data directory without a server, also after the test."""
    yield used_data_dir
    server_in(used_data_dir).stop()


@pytest.fixture
def new_data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory in which no server has ever been."""
    yield tmp_path
    server_in(tmp_path).stop()


@pytest.fixture
def other_process(data_dir: Path) -> Iterator[Program]:
    """Start another process that has started the server and then runs a line of its own."""
    with ExitStack() as stack:

        def begin(then: str) -> subprocess.Popen[str]:
            program = (
                "import signal, sys\n"
                "from pathlib import Path\n"
                "from omega.store.embedded import EmbeddedPostgres\n"
                "postgres = EmbeddedPostgres(Path(sys.argv[1]))\n"
                "print(postgres.start(), flush=True)\n" + then
            )
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", program, str(data_dir)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline().startswith("postgresql://")
            return process

        yield begin


def server_in(data_dir: Path) -> PackagedPostgres:
    return PackagedPostgres(data_dir.resolve() / "postgres18", RealClock())


def is_running(data_dir: Path) -> bool:
    return server_in(data_dir).is_running()


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        (answer,) = connection.execute(question.encode()).fetchone() or (None,)
        return answer


def refuse(_server: PackagedPostgres, _database: str) -> str:
    raise StoreUnavailable("no database for you")


def test_it_starts_on_demand_and_stops_at_the_end(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        assert "omega" == ask(postgres.url, "SELECT current_database()")
        assert is_running(data_dir)

    assert not is_running(data_dir)


def test_libpq_and_sqlalchemy_read_its_url(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        engine = sqlalchemy.create_engine(postgres.url)
        with engine.connect() as connection:
            version = connection.scalar(sqlalchemy.text("SELECT current_setting('server_version')"))
        engine.dispose()

    assert str(version).startswith("18")


def test_what_was_committed_is_there_the_next_time(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres, psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")

    with EmbeddedPostgres(data_dir) as postgres:
        assert 7 == ask(postgres.url, "SELECT number FROM kept")


def test_it_keeps_what_it_grants_and_listens_on_no_network(data_dir: Path) -> None:
    settings = ("fsync", "synchronous_commit", "listen_addresses", "jit", "max_connections")
    with EmbeddedPostgres(data_dir) as postgres:
        answers = [ask(postgres.url, f"SHOW {name}") for name in settings]
        mistakes = ask(postgres.url, "SELECT count(*) FROM pg_file_settings WHERE error <> ''")
        ours = ask(postgres.url, "SELECT setting FROM pg_settings WHERE name = 'max_wal_size'")

    assert ["on", "on", "", "off", "100"] == answers
    assert 0 == mistakes
    assert "2048" == ours


def test_a_second_start_of_the_same_object_is_none(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        assert postgres.url == postgres.start()


def test_all_who_name_one_directory_share_one_server(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data_dir)
    with EmbeddedPostgres(data_dir) as one, EmbeddedPostgres(tmp_path / "link") as other:
        assert one.url == other.url


@pytest.mark.parametrize("first_to_go", [0, 1], ids=["its starter", "another"])
def test_whoever_uses_it_last_stops_it(data_dir: Path, first_to_go: int) -> None:
    users = [EmbeddedPostgres(data_dir), EmbeddedPostgres(data_dir)]
    for user in users:
        user.start()
    last = users[1 - first_to_go]

    users[first_to_go].close()
    assert 1 == ask(last.url, "SELECT 1")

    last.close()
    assert not is_running(data_dir)


def test_another_process_uses_it_too(data_dir: Path, other_process: Program) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        other_process("").wait()

        assert 1 == ask(postgres.url, "SELECT 1")


def test_a_process_that_started_it_and_ends_leaves_it_to_the_others(
    data_dir: Path, other_process: Program
) -> None:
    starter = other_process("signal.pause()")
    with EmbeddedPostgres(data_dir) as postgres:
        starter.terminate()
        starter.wait()

        assert 1 == ask(postgres.url, "SELECT 1")
    assert not is_running(data_dir)


def test_a_process_that_just_ends_stops_it(data_dir: Path, other_process: Program) -> None:
    other_process("").wait()

    assert not is_running(data_dir)


def test_a_process_that_is_told_to_end_stops_it(data_dir: Path, other_process: Program) -> None:
    process = other_process("signal.pause()")
    process.terminate()

    assert 128 + signal.SIGTERM == process.wait()
    assert not is_running(data_dir)


def test_all_who_are_told_to_end_at_once_stop_it(data_dir: Path, other_process: Program) -> None:
    processes = [other_process("signal.pause()") for _ in range(3)]
    for process in processes:
        process.terminate()

    assert [128 + signal.SIGTERM] * 3 == [process.wait() for process in processes]
    assert not is_running(data_dir)


def test_a_fork_of_a_user_does_not_stop_it(data_dir: Path, other_process: Program) -> None:
    user = other_process(
        "import os\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
        "    print('the child is gone', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    assert user.stdout is not None
    assert "the child is gone\n" == user.stdout.readline()

    assert is_running(data_dir)


def test_the_server_that_a_killed_process_left_is_stopped_by_the_next(
    data_dir: Path, other_process: Program
) -> None:
    killed = other_process("signal.pause()")
    killed.kill()
    killed.wait()
    assert is_running(data_dir)

    with EmbeddedPostgres(data_dir):
        pass

    assert not is_running(data_dir)


def test_a_killed_process_is_a_user_no_longer(data_dir: Path, other_process: Program) -> None:
    killed = other_process("signal.pause()")
    with EmbeddedPostgres(data_dir) as postgres:
        killed.kill()
        killed.wait()

        assert 1 == ask(postgres.url, "SELECT 1")
    assert not is_running(data_dir)


def test_a_server_that_fell_under_its_users_is_started_by_the_next(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as user:
        server_in(data_dir).stop()

        with EmbeddedPostgres(data_dir):
            assert 1 == ask(user.url, "SELECT 1")


def test_who_fails_to_start_it_takes_it_from_nobody(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedPostgres(data_dir) as user:
        with monkeypatch.context() as patched:
            patched.setattr(PackagedPostgres, "url", refuse)
            with pytest.raises(StoreUnavailable, match="no database for you"):
                EmbeddedPostgres(data_dir).start()

        assert 1 == ask(user.url, "SELECT 1")
    assert not is_running(data_dir)


def test_a_file_left_by_a_crash_is_not_taken_for_a_server(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir):
        pass
    home = data_dir / "postgres18"
    # As after a crash, with the dead server's id given to somebody else: to us.
    (home / "postmaster.pid").write_text(f"{os.getpid()}\n{home}\n1\n5432\n{home}\n\n1 1\nready\n")
    assert not is_running(data_dir)

    with EmbeddedPostgres(data_dir) as postgres:
        assert 1 == ask(postgres.url, "SELECT 1")


def test_a_half_made_data_directory_is_made_anew(new_data_dir: Path) -> None:
    unfinished = new_data_dir / "postgres18.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")

    with EmbeddedPostgres(new_data_dir) as postgres:
        assert 1 == ask(postgres.url, "SELECT 1")
    assert not unfinished.exists()


def test_a_server_that_does_not_start_shows_why(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir):
        pass
    configuration = data_dir / "postgres18" / "postgresql.conf"
    sound = configuration.read_text()
    configuration.write_text("no_such_setting = 1\n")

    with pytest.raises(StoreUnavailable, match=r"does not start; the end of .*no_such_setting"):
        EmbeddedPostgres(data_dir).start()

    configuration.write_text(sound)
    with EmbeddedPostgres(data_dir) as postgres:  # the failed start holds on to nothing
        assert 1 == ask(postgres.url, "SELECT 1")


@pytest.mark.parametrize("name", ["with space", "it's, odd", "long" * 25])
def test_any_path_will_do(new_data_dir: Path, name: str) -> None:
    with EmbeddedPostgres(new_data_dir / name) as postgres:
        assert 1 == ask(postgres.url, "SELECT 1")


def test_a_locale_that_is_not_installed_does_not_matter(
    new_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")
    with EmbeddedPostgres(new_data_dir) as postgres:
        assert "UTF8" == ask(postgres.url, "SHOW server_encoding")

    assert "xx_XX.UTF-8" == os.environ["LC_ALL"]


def test_without_the_wheel_the_user_is_told_what_to_do(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "omega.store.packaged_postgres")
    monkeypatch.setitem(sys.modules, PACKAGE, None)

    with pytest.raises(SettingsError, match=r"OMEGA_DATABASE_URL.*omega-scheduler\[embedded\]"):
        EmbeddedPostgres(data_dir)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can get at another user's folder")
@pytest.mark.parametrize("owner", [1, 54_321], ids=["a user", "nobody known"])
def test_root_leaves_the_cell_of_another_user_alone(tmp_path: Path, owner: int) -> None:
    home = tmp_path / "postgres18"
    home.mkdir(mode=0o700)
    (home / "PG_VERSION").write_text("18\n")
    os.chown(home, owner, owner)

    with pytest.raises(StoreUnavailable, match=r"belongs to .*; run omega as ") as refusal:
        EmbeddedPostgres(tmp_path).start()

    assert str(home) in str(refusal.value)
    assert owner == home.stat().st_uid
    assert ["PG_VERSION"] == [path.name for path in home.iterdir()]


def test_a_server_that_ends_later_than_it_was_waited_for_has_ended(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = PackagedPostgres._pg_ctl  # noqa: SLF001 - what it runs is to fail, and only that

    def time_out(server: PackagedPostgres, *arguments: str) -> None:
        stop(server, *arguments)
        raise subprocess.CalledProcessError(1, arguments)

    postgres = EmbeddedPostgres(data_dir)
    postgres.start()
    with monkeypatch.context() as patched:
        patched.setattr(PackagedPostgres, "_pg_ctl", time_out)
        postgres.close()

    assert not is_running(data_dir)
