"""A login may call what the protocol of its role's store has, and nothing else of a store."""

from collections.abc import Iterator
from contextlib import closing
from operator import methodcaller
from uuid import UUID

import numpy as np
import pytest

from omega.errors import NotAllowed
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.lanes import QueueOrder
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.ordering.tenants import Tenant
from omega.store.leases import HandBack, Parking
from omega.store.planned import PlannedJob
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.store.turns import TurnRequest
from omega.store.usage import UsageBy
from omega.testing.builders import a_cell, a_claim, a_job, a_spec, a_transaction, claims_of_job
from omega.testing.pipeline_contract import a_pipeline
from tests.fixtures.logins import STORES, Login, methods_of, user_of

JOB = a_job(job=1_000)
"""Nobody has submitted it: calls that name it change nothing."""
NONE = integers()
TURN = TurnRequest(UUID(int=1), 1, "batch", "0", gap_ms=1_000, parts=0)
CALLS = {
    "add_machines": methodcaller("add_machines", a_cell(1, first=8)),
    "allocations": methodcaller("allocations"),
    "allocations_of": methodcaller("allocations_of", [JOB.id]),
    "allocations_on": methodcaller("allocations_on", NONE),
    "allocations_since": methodcaller("allocations_since", 0),
    "transactions_of": methodcaller("transactions_of", JOB.id, transactions_max=1),
    "begin_round": methodcaller("begin_round", "batch", holder="batch/0", length_ms=1_000),
    "add_helpers": methodcaller(
        "add_helpers", "batch", JOB.id, 1, precedence=-1, holder="batch/0", lease_ms=1_000
    ),
    "cancel": methodcaller("cancel", JOB.id),
    "changes_since": methodcaller("changes_since", 0),
    "commit": methodcaller("commit", a_transaction(claims_of_job(JOB, a_claim()))),
    "elastic_jobs": methodcaller("elastic_jobs", "batch", jobs_max=1),
    "end_helpers": methodcaller("end_helpers", "batch", NONE, np.zeros(0, dtype=np.intp)),
    "end_tasks": methodcaller("end_tasks", NONE, np.zeros(0, dtype=np.intp)),
    "enforce_notices": methodcaller("enforce_notices"),
    "exits": methodcaller("exits", JOB.id),
    "expire_machines": methodcaller("expire_machines"),
    "forget": methodcaller("forget", "batch", "0"),
    "hand_back": methodcaller("hand_back", [HandBack(JOB.id, JOB.token, 0, progressed=False)]),
    "free_machine": methodcaller("free_machine", 1, UUID(int=1)),
    "helpers": methodcaller("helpers", JOB.id),
    "hold": methodcaller("hold", JOB.id),
    "release": methodcaller("release", JOB.id),
    "requeue": methodcaller("requeue", JOB.id),
    "set_precedence": methodcaller("set_precedence", JOB.id, 1),
    "hold_machine": methodcaller("hold_machine", 1, UUID(int=1), lease_ms=1_000),
    "holdings": methodcaller("holdings", 1_000),
    "idle_jobs": methodcaller("idle_jobs", 1_000),
    "usage": methodcaller("usage", 1_000, UsageBy.TENANT),
    "job": methodcaller("job", JOB.id),
    "jobs": methodcaller("jobs"),
    "jobs_named": methodcaller("jobs_named", "job"),
    "job_records": methodcaller("job_records", JOB.id),
    "judged_since": methodcaller("judged_since", 0),
    "last_rounds": methodcaller("last_rounds"),
    "lease": methodcaller("lease", "batch", holder="batch/0", jobs_max=1, lease_ms=1_000),
    "leave_machine": methodcaller("leave_machine", 1, UUID(int=1)),
    "line_before": methodcaller("line_before", "batch", 0, JOB.id, jobs_max=1),
    "lose_tasks": methodcaller("lose_tasks", NONE),
    "machine_records": methodcaller("machine_records", 1),
    "machine_revision": methodcaller("machine_revision", 1),
    "note_round": methodcaller("note_round", "batch", 1, {}),
    "notices": methodcaller("notices"),
    "now_ms": methodcaller("now_ms"),
    "occupants": methodcaller("occupants", NONE),
    "yielding": methodcaller("yielding", 0),
    "own_report": methodcaller("own_report", "batch", "0"),
    "output": methodcaller("output", JOB.id, 0, "stdout"),
    "output_sizes": methodcaller("output_sizes", JOB.id),
    "park": methodcaller("park", [Parking(JOB.id, JOB.token, ParkReason.NO_ROOM, "full")]),
    "parked": methodcaller("parked", "batch", jobs_max=1),
    "placements": methodcaller("placements", JOB.id),
    "precedence_gap": methodcaller("precedence_gap"),
    "programs": methodcaller("programs", NONE),
    "addresses": methodcaller("addresses", NONE),
    "queue": methodcaller("queue"),
    "quotas": methodcaller("quotas"),
    "register_machine": methodcaller("register_machine", a_cell(1, first=7)),
    "recall": methodcaller("recall", "batch", 1, None, lease_ms=1_000),
    "remove_quota": methodcaller("remove_quota", QuotaScope.TENANT, "ann"),
    "renew": methodcaller("renew", {JOB.id: JOB.token}, lease_ms=1_000),
    "running": methodcaller("running", NONE, np.zeros(0, dtype=np.intp), NONE),
    "report_exits": methodcaller("report_exits", []),
    "report_outputs": methodcaller("report_outputs", []),
    "report": methodcaller("report", "batch", "0", pid=1, facts={}),
    "phases": methodcaller("phases", NONE),
    "report_phases": methodcaller("report_phases", NONE, np.zeros(0, dtype=np.intp), NONE, NONE),
    "report_progress": methodcaller("report_progress", NONE, NONE, NONE),
    "reports": methodcaller("reports"),
    "rescue": methodcaller("rescue"),
    "resize": methodcaller("resize", 1, a_cell(1).capacity[0], notice_ms=0),
    "set_precedence_gap": methodcaller("set_precedence_gap", 10),
    "set_quota": methodcaller("set_quota", Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 1})),
    "set_state": methodcaller("set_state", NONE, MachineState.OPEN),
    "snapshot": methodcaller("snapshot"),
    "submit": methodcaller("submit", [a_spec()]),
    "submit_planned": methodcaller(
        "submit_planned", PlannedJob(UUID(int=7), a_spec(), a_claim(), ())
    ),
    "agree_on_order": methodcaller("agree_on_order", "batch", "0", QueueOrder.DRF, lease_ms=1_000),
    "lanes": methodcaller("lanes", "batch"),
    "lease_reclaim": methodcaller(
        "lease_reclaim", "batch", "0", holder=UUID(int=9), lease_ms=1_000
    ),
    "queue_orders": methodcaller("queue_orders"),
    "submit_pipelines": methodcaller("submit_pipelines", [a_pipeline()]),
    "pipeline": methodcaller("pipeline", 1),
    "pipelines": methodcaller("pipelines"),
    "stage_picos": methodcaller("stage_picos", "default", "chat"),
    "remove_tenant": methodcaller("remove_tenant", "ann"),
    "set_tenant": methodcaller("set_tenant", Tenant("ann", 2)),
    "sum_use": methodcaller("sum_use"),
    "tenant_use": methodcaller("tenant_use", age_ms_max=0),
    "tenants": methodcaller("tenants"),
    "unfinished_tasks": methodcaller("unfinished_tasks"),
    "take_turn": methodcaller("take_turn", TURN, lease_ms=1_000),
    "progress": methodcaller("progress", integers([JOB.id])),
    "unfinished": methodcaller("unfinished", [JOB.id]),
    "use": methodcaller("use"),
    "verify": methodcaller("verify"),
    "waiting_job": methodcaller("waiting_job", JOB.id),
    "wake": methodcaller("wake", [JOB.id]),
}
"""A call of each method."""
NEEDS_NO_RIGHT = {"now_ms", "close"}


@pytest.fixture(params=STORES)
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(role: str, database_url: str, login: Login) -> Iterator[PostgresStore]:
    """A cell of one machine, as a login sees it that has this role; a node's has all machines."""
    url = login(role.removeprefix("omega_"), role)
    assign_machines(database_url, user_of(url), None)
    with closing(PostgresStore(database_url)) as owner:
        owner.add_machines(a_cell(1))
    with closing(PostgresStore(url)) as store:
        yield store


def is_allowed(store: PostgresStore, method: str) -> bool:
    try:
        CALLS[method](store)
    except NotAllowed:
        return False
    return True


def test_each_method_is_called() -> None:
    assert methods_of(Store) - {"close"} == CALLS.keys()


def test_a_login_may_call_what_its_store_has_and_nothing_else(
    role: str, store: PostgresStore
) -> None:
    allowed = {method for method in CALLS if is_allowed(store, method)}

    assert methods_of(STORES[role]) | NEEDS_NO_RIGHT == allowed | NEEDS_NO_RIGHT
