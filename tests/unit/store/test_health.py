"""What signs mean, where no server of ours shows them: old versions, slow disks, far networks."""

from dataclasses import replace

import pytest

from omega.store.postgres.access import Access, Member, is_disabled
from omega.store.postgres.health import logins, settings, state
from omega.store.postgres.health.copies import Copies
from omega.store.postgres.health.examination import diagnose
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.health.server_state import (
    RoleSetting,
    ServerState,
    Session,
    Setting,
    TableState,
)

SETTINGS = {
    "server_version": Setting("18.4"),
    "server_version_num": Setting("180004"),
    "server_encoding": Setting("UTF8"),
    "fsync": Setting("on"),
    "full_page_writes": Setting("on"),
    "synchronous_commit": Setting("on"),
    "shared_buffers": Setting("16384", "8kB"),
    "max_connections": Setting("100"),
    "superuser_reserved_connections": Setting("3"),
    "max_wal_size": Setting("1024", "MB"),
    "checkpoint_timeout": Setting("5", "min"),
    "jit": Setting("off"),
    "archive_mode": Setting("off"),
    "autovacuum": Setting("on"),
    "synchronous_standby_names": Setting(""),
    "track_counts": Setting("on"),
    "autovacuum_naptime": Setting("60", "s"),
}


def a_table(name: str, **said: int) -> TableState:
    known = {"live": 0, "dead": 0, "updated": 0, "hot": 0, "estimate": 0, "heap_bytes": 0}
    options = sorted(state.declared(name))
    return TableState(name=name, **{**known, "bytes": 8_192, **said}, options=options)


HEALTHY = ServerState(
    login="ann",
    database="cell",
    is_standby=False,
    settings=SETTINGS,
    tables={
        name: a_table(name)
        for name in ("machine", "job", "quota_shard", "allocation", "transaction", "ended_task")
    },
    sessions=(),
    hidden=0,
    ours=8,
    connections=10,
    behind=2,
    prepared=(),
    idle_slots=(),
    role_settings=(),
    checkpoints_timed=1,
    checkpoints_requested=3,
    round_trips_s=(0.0001, 0.0002),
    commits_s=(0.001, 0.002, 0.003),
    copies=Copies(),
)

PLANNER = Member("planner", connections_max=20, connections=4)
LIMITED = Access(
    database="cell",
    owner="ann",
    cell_owner="ann",
    timeouts={"statement_timeout": "5min", "idle_in_transaction_session_timeout": "7s"},
    members=(PLANNER,),
)
OPEN = replace(
    LIMITED,
    of_public=("CONNECT", "CREATE", "TEMPORARY"),
    open_databases=("cell", "postgres"),
    public_owner="ann",
    public_is_open=True,
    open_functions=("pg_advisory_lock(bigint)",),
    timeouts={},
    members=(replace(PLANNER, connections_max=-1, powers=("CREATEDB", "BYPASSRLS")),),
)


def with_setting(name: str, value: str, unit: str = "", source: str = "default") -> ServerState:
    return replace(HEALTHY, settings={**SETTINGS, name: Setting(value, unit, source)})


def with_table(name: str, **said: int) -> ServerState:
    return replace(HEALTHY, tables={**HEALTHY.tables, name: a_table(name, **said)})


def complaints(server: ServerState, access: Access = LIMITED) -> list[Finding]:
    found = diagnose(server, access, open_for_s=10)
    return [finding for finding in found if finding.severity is not Severity.GOOD]


def test_the_healthy_have_nothing_to_complain_of() -> None:
    assert [] == complaints(HEALTHY)


@pytest.mark.parametrize(
    ("server", "what", "severity"),
    [
        (with_setting("server_version_num", "140012"), "version", Severity.UNSAFE),
        (with_setting("server_encoding", "SQL_ASCII"), "encoding", Severity.UNSAFE),
        (with_setting("fsync", "off"), "fsync", Severity.UNSAFE),
        (with_setting("track_counts", "off"), "track_counts", Severity.SLOW),
        (with_setting("checkpoint_timeout", "299", "s"), "checkpoint_timeout", Severity.SLOW),
        (with_setting("max_wal_size", "1023", "MB"), "max_wal_size", Severity.SLOW),
        (with_setting("max_connections", "20"), "max_connections", Severity.LOOK),
        (with_table("allocation", bytes=200 * 2**20), "shared_buffers", Severity.SLOW),
        (with_table("job", live=999, dead=1_000), "dead rows", Severity.SLOW),
        (with_table("quota_shard", updated=1_000, hot=799), "heap-only updates", Severity.SLOW),
        (
            with_table("machine", live=1_000, heap_bytes=5_000_000),
            "size of machine",
            Severity.SLOW,
        ),
        (with_table("ended_task", estimate=10**7), "history", Severity.LOOK),
        (replace(HEALTHY, is_standby=True, commits_s=()), "server", Severity.LOOK),
        (replace(HEALTHY, tables={}), "cell", Severity.LOOK),
        (replace(HEALTHY, behind=1_001), "open transactions", Severity.SLOW),
        (replace(HEALTHY, hidden=4), "open transactions", Severity.HIDDEN),
        (replace(HEALTHY, prepared=(("left", 11.0),)), "prepared transactions", Severity.SLOW),
        (replace(HEALTHY, idle_slots=("old",)), "replication slots", Severity.LOOK),
        (replace(HEALTHY, checkpoints_requested=21), "checkpoints", Severity.LOOK),
        (replace(HEALTHY, round_trips_s=(0.002, 0.9)), "round trip", Severity.LOOK),
        (replace(HEALTHY, round_trips_s=(0.02, 0.9)), "round trip", Severity.SLOW),
        (replace(HEALTHY, commits_s=(0.001, 0.011, 0.02)), "durable commit", Severity.SLOW),
        (replace(HEALTHY, commits_s=()), "durable commit", Severity.HIDDEN),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_bad_sign_is_one_complaint(server: ServerState, what: str, severity: Severity) -> None:
    (complaint,) = complaints(server)

    assert (what, severity) == (complaint.what, complaint.severity)
    assert complaint.found
    assert complaint.why
    assert complaint.run


def test_a_slow_moment_is_no_slow_network_and_no_slow_disk() -> None:
    server = replace(HEALTHY, round_trips_s=(0.0001, 9.0), commits_s=(0.001, 0.002, 9.0))

    assert [] == complaints(server)


def test_the_worst_comes_first() -> None:
    server = replace(with_setting("fsync", "off"), idle_slots=("old",), behind=5_000, hidden=1)
    found = [finding.severity for finding in diagnose(server, LIMITED, open_for_s=10)]

    assert found == sorted(found, key=list(Severity).index)
    assert [Severity.UNSAFE, Severity.SLOW, Severity.LOOK, Severity.GOOD] == list(
        dict.fromkeys(found)
    )


@pytest.mark.parametrize(
    ("source", "run"),
    [
        ("configuration file", "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"),
        ("database", 'ALTER DATABASE "cell" RESET fsync'),
        ("user", 'ALTER ROLE "ann" RESET fsync'),
        ("database user", 'ALTER ROLE "ann" IN DATABASE "cell" RESET fsync'),
    ],
)
def test_a_setting_is_undone_where_it_was_made(source: str, run: str) -> None:
    (complaint,) = complaints(with_setting("fsync", "off", source=source))

    assert run == complaint.run


@pytest.mark.parametrize(
    ("role", "database", "run"),
    [
        ("ann", "", 'ALTER ROLE "ann" RESET synchronous_commit'),
        ("ann", "cell", 'ALTER ROLE "ann" IN DATABASE "cell" RESET synchronous_commit'),
        ("", "cell", 'ALTER DATABASE "cell" RESET synchronous_commit'),
        ("", "", "ALTER ROLE ALL RESET synchronous_commit"),
    ],
)
def test_what_a_role_brings_along_is_undone_there(role: str, database: str, run: str) -> None:
    setting = RoleSetting(role, database, "synchronous_commit=off")
    finding = settings.role_settings(replace(HEALTHY, role_settings=(setting,)))

    assert (Severity.LOOK, run) == (finding.severity, finding.run)


def test_what_our_connections_set_themselves_is_no_complaint() -> None:
    setting = RoleSetting("ann", "", "statement_timeout=1s")

    assert [] == complaints(replace(HEALTHY, role_settings=(setting,)))


def test_of_many_open_transactions_the_oldest_are_named() -> None:
    one = Session(1, "ann", "psql", "active", writes=False, open_s=60.0)
    many = tuple(replace(one, pid=pid) for pid in range(1, 6))
    (complaint,) = complaints(replace(HEALTHY, sessions=many))

    assert complaint.found.startswith("1 (ann psql) active, reads, open for 60 s; 2 ")
    assert complaint.found.endswith("; 2 more")
    assert "pg_terminate_backend(1)" in complaint.run


def test_each_thing_that_is_open_to_logins_is_one_complaint() -> None:
    found = {one.what: one for one in complaints(HEALTHY, OPEN)}

    assert {
        "connection limits": 'ALTER ROLE "planner" CONNECTION LIMIT 20',
        "powers of logins": 'ALTER ROLE "planner" NOCREATEDB NOBYPASSRLS',
        "timeouts": "ALTER DATABASE \"cell\" SET statement_timeout = '5min';"
        " ALTER DATABASE \"cell\" SET idle_in_transaction_session_timeout = '1min'",
        "rights of PUBLIC": 'REVOKE CREATE ON DATABASE "cell" FROM PUBLIC;'
        ' REVOKE TEMPORARY ON DATABASE "cell" FROM PUBLIC;'
        " REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "lock functions": "omega db init --roles, as a superuser; docs/guide/roles.md has the SQL",
        "CONNECT": 'GRANT CONNECT ON DATABASE "cell" TO "planner";'
        ' REVOKE CONNECT ON DATABASE "cell", "postgres" FROM PUBLIC',
    } == {what: one.run for what, one in found.items()}
    assert {Severity.LOOK} == {one.severity for one in found.values()}
    assert all(one.why and one.found for one in found.values())


def test_without_logins_in_our_roles_every_check_passes() -> None:
    assert [] == complaints(HEALTHY, replace(OPEN, members=()))


def test_a_superuser_has_no_limit_and_is_told_of_its_power() -> None:
    mighty = Member("mighty", connections_max=-1, connections=0, powers=("SUPERUSER",))
    (complaint,) = complaints(HEALTHY, replace(LIMITED, members=(PLANNER, mighty)))

    assert ("powers of logins", "mighty has SUPERUSER") == (complaint.what, complaint.found)


def test_of_many_logins_the_first_are_named_and_limited() -> None:
    many = tuple(Member(f"login-{at}", -1, connections=at * 10) for at in range(5))
    finding = logins.connection_limits(replace(LIMITED, members=many))

    assert "none for login-0, login-1, login-2, 2 more" == finding.found
    assert finding.run.endswith('; ALTER ROLE "login-2" CONNECTION LIMIT 40')
    assert 3 == finding.run.count("ALTER ROLE")


def test_other_databases_are_closed_without_a_grant_here() -> None:
    finding = logins.open_databases(replace(LIMITED, open_databases=("postgres", "template1")))

    assert 'REVOKE CONNECT ON DATABASE "postgres", "template1" FROM PUBLIC' == finding.run


def test_a_zero_timeout_counts_as_off() -> None:
    assert ["", "0", "0ms", " 0.0 min"] == [
        said
        for said in ("", "0", "0ms", " 0.0 min", "1", "5min", "0.5s", "10ms")
        if is_disabled(said)
    ]
