"""Lanes, tenants and agreed orders, against logins that send anything and keep locks."""

from uuid import UUID

import pytest

from tests.attack.calls import LEASE_MS, call, call_sql, submit_jobs, try_call
from tests.attack.hostile_names import INVALID
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_constraint, a_group, a_job

LEASE_FROM_LANES = (
    "SELECT id FROM omega.lease_jobs('batch', %s, %s::integer, 60000, %s::text[], %s::integer[],"
    " %s::integer[])"
)
LOCKED = "the call waits for another login's transaction"


@pytest.fixture
def hostile(database: Database) -> Session:
    """Another login of schedulers, with a transaction open."""
    session = database.session_of("hostile", "attack_hostile", "omega_scheduler")
    session.execute("BEGIN")
    return session


def test_a_lease_of_lanes_passes_over_what_another_holds(
    database: Database, submitter: Session, scheduler: Session, hostile: Session
) -> None:
    jobs = submit_jobs(submitter, *[a_job(a_group()) for _ in range(3)])
    ((tenant, lane_class),) = database.query("SELECT DISTINCT tenant, lane_class FROM omega.job")
    hostile.execute(LEASE_FROM_LANES, ["h", 10, [tenant], [lane_class], [2]])
    arguments = ["s", 10, [tenant], [lane_class], [2]]

    assert database.step(scheduler, LEASE_FROM_LANES, arguments), LOCKED
    assert [(jobs[2],)] == scheduler.answer.rows


def test_a_lane_that_is_named_twice_gives_each_job_once(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    jobs = submit_jobs(submitter, *[a_job(a_group()) for _ in range(3)])
    ((tenant, lane_class),) = database.query("SELECT DISTINCT tenant, lane_class FROM omega.job")
    rows = scheduler.execute(LEASE_FROM_LANES, ["s", 9, [tenant] * 2, [lane_class] * 2, [1, 2]])

    assert rows
    assert sorted(set(rows)) == sorted(rows)
    assert {job for (job,) in rows} <= set(jobs)


def test_lanes_that_are_no_lanes_are_refused(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    submit_jobs(submitter, a_job(a_group()))
    many = 10_001
    bad: list[list[object]] = [
        [["a"], [0], []],
        [["a"], [], [1]],
        [["a", None], [0, 0], [1, 1]],
        [["a"], [None], [1]],
        [["default"], [0], [None]],
        [["default"], [0], [-1]],
        [["a"], None, [1]],
        [[["a"]], [[0]], [[1]]],
        [["a"] * many, [0] * many, [1] * many],
    ]
    answers = [
        scheduler.try_execute(LEASE_FROM_LANES, ["s", 9, *arrays]).sqlstate for arrays in bad
    ]
    answers.append(
        scheduler.try_execute(LEASE_FROM_LANES, ["s", None, ["default"], [0], [1]]).sqlstate
    )

    assert [INVALID] * (len(bad) + 1) == answers
    assert [("pending",)] == database.query("SELECT state FROM omega.job")


def test_a_sum_of_use_that_is_kept_open_holds_up_nobody(
    database: Database, scheduler: Session, hostile: Session
) -> None:
    call(hostile, "read_tenant_use", 0)

    assert database.step(scheduler, call_sql("read_tenant_use"), [0]), LOCKED
    assert [(0, None, None, None, None)] == scheduler.answer.rows


def test_a_sum_that_took_long_or_was_dated_wrongly_is_made_again(
    database: Database, owner: Session, scheduler: Session
) -> None:
    call(scheduler, "read_tenant_use", 0)
    for age in ("1 hour", "-1 hour"):
        owner.execute(
            f"UPDATE omega.tenant_use SET took_ms = 2147483647, tenants = '{{a}}',"
            f" used = '{{{{1,1,1,1}}}}', summed_at = now() - interval '{age}'"
        )
        assert [(0, None, None, None, None)] == call(scheduler, "read_tenant_use", 50)


def test_a_job_as_large_as_a_job_may_be_leaves_lanes_readable(
    submitter: Session, scheduler: Session
) -> None:
    most = 2**31 - 1
    (job,) = submit_jobs(submitter, a_job(a_group(tasks=100_000, cpu_milli=most, memory_mib=most)))
    ((_, _, _, head, _, demand, _),) = call(scheduler, "read_lanes", "batch")

    assert (head, 100_000 * most) == (job, demand[0])


def test_a_tenant_has_few_lanes_whatever_it_submits(database: Database, submitter: Session) -> None:
    sizes = [1, *(2**power - 1 for power in range(3, 31, 3))]
    zones = [[], *([a_constraint(values=[str(zone)])] for zone in range(12))]
    jobs = [
        a_job(a_group(tasks=9, cpu_milli=cpu, gpus=gpus, constraints=zone), minimum=minimum)
        for cpu in sizes
        for gpus in (0, 8)
        for minimum in (0, 9)
        for zone in zones
    ]
    submit_jobs(submitter, *jobs)
    ((lanes, first, last),) = database.query(
        "SELECT count(DISTINCT lane_class), min(lane_class), max(lane_class) FROM omega.job"
    )

    assert 64 + 9 < lanes <= 192
    assert 0 <= first < last < 192


def test_an_order_that_is_kept_open_holds_up_nobody(
    database: Database, scheduler: Session, hostile: Session
) -> None:
    call(scheduler, "agree_on_order", "service", "0", "drf", LEASE_MS)
    call(hostile, "agree_on_order", "batch", "h", "drf", LEASE_MS)
    answers = []
    for kind, order in (("batch", "fifo"), ("service", "drf"), ("service", "fifo")):
        arguments = [kind, "1", order, LEASE_MS]
        assert database.step(scheduler, call_sql("agree_on_order"), arguments), LOCKED
        answers += scheduler.answer.rows

    assert [(True, None, None), (True, None, None), (False, "service/0", "drf")] == answers
    hostile.execute("ROLLBACK")
    assert [(True, None, None)] == call(scheduler, "agree_on_order", "batch", "1", "fifo", LEASE_MS)


def test_an_agreement_is_over_after_a_minute_whatever_was_asked_for(
    database: Database, scheduler: Session
) -> None:
    a_day = 24 * 60 * 60 * 1_000
    for replica in "01":
        arguments = ["batch", replica, "drf", a_day]
        assert [(True, None, None)] == call(scheduler, "agree_on_order", *arguments)
    ((seconds,),) = database.query(
        "SELECT extract(epoch FROM expires_at - clock_timestamp())::float FROM omega.queue_order"
    )

    assert 0 < seconds <= 60


def test_one_login_agrees_on_the_orders_of_so_many_kinds_and_no_more(
    database: Database, owner: Session, scheduler: Session
) -> None:
    most = 100
    call(scheduler, "agree_on_order", "kind-0", "0", "drf", LEASE_MS)
    owner.execute(
        "INSERT INTO omega.queue_order (scheduler, name, replica, login, expires_at)"
        " SELECT 'kind-' || n, name, replica, login, expires_at"
        " FROM omega.queue_order, generate_series(1, %s) AS n",
        [most - 1],
    )

    more = try_call(scheduler, "agree_on_order", "one more", "0", "drf", LEASE_MS)
    assert "54000" == more.sqlstate
    assert [(True, None, None)] == call(scheduler, "agree_on_order", "kind-0", "1", "drf", LEASE_MS)
    assert [(most,)] == database.query("SELECT count(*) FROM omega.queue_order")


def test_orders_that_are_no_orders_are_refused(database: Database, scheduler: Session) -> None:
    good = ["batch", "0", "drf", LEASE_MS]
    bad = [
        *[(at, None) for at in range(4)],
        *[(0, name) for name in ("", "a\x1bb", "x" * 201)],
        *[(1, name) for name in ("", "a\nb")],
        *[(2, name) for name in ("", "DRF", "fair")],
        *[(3, lease) for lease in (-1, 2**63 - 1)],
    ]
    answers = {
        case: try_call(
            scheduler, "agree_on_order", *good[: case[0]], case[1], *good[case[0] + 1 :]
        ).sqlstate
        for case in bad
    }

    assert dict.fromkeys(bad, INVALID) == answers
    assert [] == database.query("SELECT FROM omega.queue_order")


def test_a_lease_to_reclaim_that_is_kept_open_makes_nobody_wait(
    database: Database, scheduler: Session, hostile: Session
) -> None:
    arguments = [UUID(int=1), "batch", "h", LEASE_MS]
    assert [(True,)] == call(hostile, "lease_reclaim", *arguments)
    others = [UUID(int=2), *arguments[1:]]
    assert database.step(scheduler, call_sql("lease_reclaim"), others), LOCKED
    assert [(False,)] == scheduler.answer.rows

    hostile.execute("ROLLBACK")
    assert [(True,)] == call(scheduler, "lease_reclaim", *others)


def test_the_lease_to_reclaim_is_its_holders_and_over_soon(
    database: Database, owner: Session, scheduler: Session
) -> None:
    a_day = 24 * 60 * 60 * 1_000
    arguments = [UUID(int=1), "batch", "0", a_day]
    assert [(True,)] == call(scheduler, "lease_reclaim", *arguments)
    ((seconds,),) = database.query(
        "SELECT extract(epoch FROM expires_at - clock_timestamp())::float FROM omega.reclaim_lease"
    )
    assert 0 < seconds <= 10

    # Another login that knows the holder does not have the lease.
    assert [(False,)] == call(owner, "lease_reclaim", *arguments)


def test_leases_to_reclaim_that_are_none_are_refused(
    database: Database, scheduler: Session
) -> None:
    good = [UUID(int=1), "batch", "0", LEASE_MS]
    bad = [
        *[(at, None) for at in range(4)],
        *[(1, name) for name in ("", "a\x1bb", "x" * 201)],
        *[(2, name) for name in ("", "a\nb")],
        *[(3, lease) for lease in (-1, 2**63 - 1)],
    ]
    answers = {
        case: try_call(
            scheduler, "lease_reclaim", *good[: case[0]], case[1], *good[case[0] + 1 :]
        ).sqlstate
        for case in bad
    }

    assert dict.fromkeys(bad, INVALID) == answers
    assert [] == database.query("SELECT FROM omega.reclaim_lease")


def test_tenants_that_are_no_tree_are_refused(database: Database, owner: Session) -> None:
    call(owner, "set_tenant", "org", 1, None)
    call(owner, "set_tenant", "team", 2, "org")
    bad = [
        (None, 1, None),
        ("", 1, None),
        ("a\x1bb", 1, None),
        ("a", None, None),
        ("a", 0, None),
        ("a", -1, None),
        ("a", 10_001, None),
        ("a", 1, ""),
        ("a", 1, "stranger"),
        ("a", 1, "a"),
        ("org", 1, "org"),
        ("org", 1, "team"),
    ]
    answers = {it: try_call(owner, "set_tenant", *it).sqlstate for it in bad}

    assert dict.fromkeys(bad, INVALID) == answers
    assert INVALID == try_call(owner, "remove_tenant", "org").sqlstate
    assert [("org", 1, None), ("team", 2, "org")] == database.query(
        "SELECT name, weight, parent FROM omega.tenant ORDER BY name"
    )


def test_only_the_owner_sets_tenants(scheduler: Session, submitter: Session) -> None:
    for login in (scheduler, submitter):
        assert "42501" == try_call(login, "set_tenant", "a", 9, None).sqlstate
        assert "42501" == try_call(login, "remove_tenant", "a").sqlstate
        assert "42501" == login.try_execute("UPDATE omega.tenant SET weight = 9").sqlstate
