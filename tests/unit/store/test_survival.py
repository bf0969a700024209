"""What a server's copies mean for a cell."""

from dataclasses import replace

import pytest

from omega.store.postgres.health import survival
from omega.store.postgres.health.copies import (
    Archive,
    Copies,
    Host,
    HostState,
    Standby,
    read_hosts,
    required,
)
from omega.store.postgres.health.findings import Severity
from omega.store.postgres.health.server_state import Setting
from tests.unit.store.test_health import HEALTHY, with_setting

PRIMARY = HostState(is_standby=False, system="7", timeline=1, receivers=0)
STANDBY = HostState(is_standby=True, system="7", timeline=None, receivers=1)


@pytest.mark.parametrize(
    ("names", "standbys"),
    [
        ("", 0),
        (" ", 0),
        ("*", 1),
        ("a, b", 1),
        ("FIRST 2 (a, b, c)", 2),
        ("any 3 (*)", 3),
        ("2 (a, b)", 2),
        ('"first 9 (x)"', 1),
    ],
)
def test_commits_wait_for_as_many_standbys_as_are_asked_for(names: str, standbys: int) -> None:
    assert standbys == required(names)


@pytest.mark.parametrize(
    ("states", "severity"),
    [
        (("quorum", "quorum"), Severity.GOOD),
        (("sync", "potential"), Severity.UNSAFE),
        (("sync", "async", "sync"), Severity.GOOD),
        (("sync", None), Severity.HIDDEN),
        ((None,), Severity.UNSAFE),
        ((), Severity.UNSAFE),
    ],
)
def test_of_two_synchronous_standbys(states: tuple[str | None, ...], severity: Severity) -> None:
    server = replace(
        with_setting("synchronous_standby_names", "ANY 2 (*)"),
        copies=Copies(tuple(Standby("one", state) for state in states)),
    )

    assert severity is survival.synchronous_standbys(server).severity


def test_a_standby_waits_for_nobody() -> None:
    server = replace(with_setting("synchronous_standby_names", "*"), is_standby=True)

    assert Severity.GOOD is survival.synchronous_standbys(server).severity


@pytest.mark.parametrize(
    ("mode", "archive", "severity", "found"),
    [
        ("off", Archive(1, "0A", is_failing=True), Severity.GOOD, "off: "),
        ("on", Archive(), Severity.GOOD, "empty"),
        ("on", Archive(2, "0A", archived_s_ago=3.0), Severity.GOOD, "last file 3 s ago"),
        ("always", Archive(2, "0A", is_failing=True), Severity.UNSAFE, "0A could not be archived"),
    ],
)
def test_an_archive(mode: str, archive: Archive, severity: Severity, found: str) -> None:
    server = replace(
        HEALTHY,
        settings={**HEALTHY.settings, "archive_mode": Setting(mode)},
        copies=Copies(archive=archive),
    )
    finding = survival.archive(server)

    assert severity is finding.severity
    assert finding.found.startswith(found)


@pytest.mark.parametrize(
    ("states", "severity", "what"),
    [
        ((PRIMARY,), Severity.GOOD, "one"),
        ((PRIMARY, STANDBY), Severity.GOOD, "is a standby"),
        ((PRIMARY, None), Severity.LOOK, "does not answer"),
        ((STANDBY, STANDBY), Severity.LOOK, "no commit is taken"),
        ((PRIMARY, replace(STANDBY, receivers=0)), Severity.LOOK, "receives nothing"),
        ((PRIMARY, replace(PRIMARY, timeline=2)), Severity.UNSAFE, "split brain"),
        ((PRIMARY, replace(STANDBY, system="8")), Severity.UNSAFE, "no copies of each other"),
    ],
)
def test_hosts_of_a_url(
    states: tuple[HostState | None, ...], severity: Severity, what: str
) -> None:
    named = tuple(Host(f"db{at}", state) for at, state in enumerate(states))
    finding = survival.hosts(replace(HEALTHY, copies=Copies(hosts=named)))

    assert severity is finding.severity
    assert what in f"{finding.found}; {finding.why}"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("postgresql://x@127.0.0.1/y", ["127.0.0.1"]),
        ("postgresql:///y", [""]),
        ("postgresql://x@127.0.0.1:1,127.0.0.2:2/y", ["127.0.0.1", "127.0.0.2"]),
        ("postgresql://x@127.0.0.1:1,127.0.0.1:2/y", ["127.0.0.1:1", "127.0.0.1:2"]),
        ("postgresql://x@/y?hostaddr=127.0.0.1,127.0.0.2&port=1", ["127.0.0.1", "127.0.0.2"]),
    ],
)
def test_hosts_are_named_as_the_url_names_them(url: str, names: list[str]) -> None:
    hosts = read_hosts(url)

    assert names == [host.name for host in hosts]
    assert all(host.state is None for host in hosts)
