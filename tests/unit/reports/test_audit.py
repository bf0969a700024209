"""Audits: shares as exact fractions, and who is above a policy."""

from fractions import Fraction

import pytest

from omega.model.quotas import Budget, QuotaScope
from omega.reports.audit import AuditReport
from omega.store.holdings import Holding, Holdings, IdleCause, IdleJob
from omega.testing.pass_through import PassThrough
from omega.workload.audit_policy import NO_POLICY, AuditPolicy, parse_policy

SECOND_MS = 1_000
SECOND_US = 1_000_000
IDLE = IdleJob(
    7, "half", "ann", "batch", IdleCause.UNPLACED_SIBLINGS, 2, 3, 4_000, (2_000, 0, 0, 0)
)


class Holds(PassThrough):
    """A store that returns what it is told to, and what it was asked."""

    def __init__(self, *by: Holding, capacity: tuple[int, ...] = (1_000, 500, 0, 0)) -> None:
        self._by = by
        self._capacity = capacity
        self.asked: list[int] = []

    def holdings(self, over_ms: int) -> Holdings:
        return Holdings(10_000 - over_ms, 10_000, self._capacity, self._by, unknown=2)

    def idle_jobs(self, idle_ms: int) -> list[IdleJob]:
        self.asked.append(idle_ms)
        return [IDLE]


def audited(policy: str | AuditPolicy, *by: Holding, **cell: tuple[int, ...]) -> AuditReport:
    """Judge what was held in a second."""
    read = parse_policy(policy, "p.yaml") if isinstance(policy, str) else policy
    return AuditReport.read(Holds(*by, **cell), read, SECOND_MS)


def held(name: str, *amounts: int, kind: bool = False) -> Holding:
    """Return what a tenant, or a kind, has when it holds so much for a whole second."""
    scope = QuotaScope.SCHEDULER if kind else QuotaScope.TENANT
    filled = (*amounts, *[0] * (4 - len(amounts)))
    return Holding(scope, name, 1, tuple(amount * SECOND_US for amount in filled))


ANN, BOB, BATCH = held("ann", 300, 200), held("bob", 100, 50), held("batch", 400, 250, kind=True)


def test_shares_are_of_the_capacity_over_the_time_the_largest_first() -> None:
    report = audited(NO_POLICY, BOB, ANN, BATCH)

    cpu, memory = Budget.CPU_MILLI, Budget.MEMORY_MIB
    assert [
        ("ann", {cpu: Fraction(3, 10), memory: Fraction(2, 5)}, memory),
        ("bob", {cpu: Fraction(1, 10), memory: Fraction(1, 10)}, cpu),
    ] == [(one.name, one.parts, one.dominant) for one in report.of(QuotaScope.TENANT)]
    assert [("batch", Fraction(2, 5))] == [
        (one.name, one.parts[cpu]) for one in report.of(QuotaScope.SCHEDULER)
    ]
    assert (0, 2) == (report.above, report.holdings.unknown)


def test_without_a_policy_nobody_is_asked_who_is_idle_and_nothing_is_above() -> None:
    store = Holds(ANN)

    report = AuditReport.read(store, NO_POLICY, SECOND_MS)

    assert ([], 0, []) == (store.asked, report.above, list(report.idle))


@pytest.mark.parametrize(
    ("limit", "above"),
    [
        ("{at_most: 40%}", True),
        ("{at_most: 60%}", False),
        ("{at_most: 60%, of: memory}", False),
        ("{at_most: 59.999999999%}", True),
        ("{at_most: 30%, of: cpu}", False),
        ("{at_most: 29.9%, of: cpu}", True),
        ("{at_most: 59%, of: memory}", True),
        ("{at_most: 0, of: disk}", False),
        ("{at_most: 0, of: gpus}", False),
    ],
)
def test_above_is_who_holds_more_than_allowed_of_what_is_limited(
    limit: str, *, above: bool
) -> None:
    report = audited(f"tenants: {{ann: {limit}}}", held("ann", 300, 300), BATCH)

    assert above == bool(report.above)
    assert [above] == [one.is_above for one in report.of(QuotaScope.TENANT)]
    assert [False] == [one.is_above for one in report.of(QuotaScope.SCHEDULER)]


def test_a_tenant_of_its_own_limit_is_not_held_to_that_of_everybody() -> None:
    policy = "every_tenant: {at_most: 5%}\ntenants: {ann: {at_most: 90%}}"

    report = audited(policy, ANN, BOB)

    tenants = report.of(QuotaScope.TENANT)
    assert [("bob", True), ("ann", False)] == [(one.name, one.is_above) for one in tenants]


def test_who_is_named_and_held_nothing_is_listed_with_nothing() -> None:
    report = audited("schedulers: {service: {at_most: 0%}}", ANN, BATCH)

    assert [("batch", 1), ("service", 0)] == [
        (one.name, one.runs) for one in report.of(QuotaScope.SCHEDULER)
    ]
    assert 0 == report.above


def test_on_a_cell_without_machines_nothing_is_a_share_and_nothing_above() -> None:
    report = audited("every_tenant: {at_most: 0%}", ANN, capacity=(0, 0, 0, 0))

    (ann,) = report.of(QuotaScope.TENANT)
    assert (None, None, {}, 0) == (ann.dominant, ann.part, ann.parts, report.above)
    assert ann.row()["share"] is None


def test_an_idle_job_that_has_held_for_longer_is_above() -> None:
    store = Holds()

    policy = parse_policy("idle: {at_most: 5s}", "p.yaml")
    report = AuditReport.read(store, policy, SECOND_MS)

    assert [5_001] == store.asked
    assert (1, 6_000) == (report.above, report.idle_for_ms(IDLE))
    (row,) = report.rows()
    assert {
        "check": "idle",
        "job": 7,
        "cause": "unplaced_siblings",
        "idle_ms": 6_000,
        "at_most_ms": 5_000,
    }.items() <= row.items()


def test_a_row_has_what_was_judged() -> None:
    report = audited("tenants: {ann: {at_most: 20%, of: cpu}}", ANN)

    assert {
        "check": "tenant",
        "name": "ann",
        "runs": 1,
        "held_us": {
            "cpu_milli": 300_000_000,
            "memory_mib": 200_000_000,
            "disk_mib": 0,
            "gpu_slices": 0,
        },
        "shares": {"cpu_milli": 0.3, "memory_mib": 0.4},
        "of": "cpu_milli",
        "share": 0.3,
        "at_most": 0.2,
        "above": True,
    } == report.rows()[0]
    assert {"since_ms": 9_000, "until_ms": 10_000, "above": 1, "runs_unknown": 2}.items() <= (
        report.summary().items()
    )
