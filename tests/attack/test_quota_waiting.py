"""Setting a quota keeps nobody else waiting, whatever is open, and however long it takes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg.types.json import Jsonb

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, Lease, ask, calling, do, start, step
from tests.attack.quota_cast import ANN, DEEDS, RUNNING, Cast, cores, do_deed
from tests.attack.sessions import Session, Stage
from tests.attack.wires import a_job

SCOPES = (("tenant", "ann"), ("scheduler", "batch"))


def opened(cast: Cast, what: str) -> Session:
    """Leave a transaction open in which this was done; return whose."""
    if what in DEEDS:
        return do_deed(cast, what)
    cast.other.do("BEGIN")
    cast.both.do("BEGIN")
    match what:
        case "a submission":
            do(cast.both, "submit_jobs", Jsonb([a_job()]))
            return cast.both
        case "a lease":
            do(cast.submitter, "submit_jobs", Jsonb([a_job()]))
            do(cast.other, "lease_jobs", "batch", "me", 1, LEASE_MS)
        case "a read of quotas":
            do(cast.other, "read_quotas")
        case "a renewal":
            do(cast.other, "renew_leases", [cast.ann.job], [cast.ann.token], LEASE_MS)
        case "a commit of another tenant":
            claims = cast.claims(cast.bob, RUNNING)
            do(cast.other, "commit_claims", *claims.arguments)
    return cast.other


OPEN = (
    "a submission",
    "a lease",
    "a read of quotas",
    "a renewal",
    "a commit of another tenant",
    *DEEDS,
)


@contextmanager
def others_go_on(cast: Cast) -> Iterator[None]:
    """See that what another tenant does is done at once, before and after the block."""
    go_on(cast)
    yield
    go_on(cast)


def go_on(cast: Cast) -> None:
    """Submit, lease, place and cancel a job of Carl's, each a statement of its own."""
    stage = cast.stage
    roles = ("omega_submitter", "omega_scheduler")
    bystander = stage.sessions.get("bystander") or stage.session("bystander", *roles)
    wire = a_job(tenant="carl", scheduler="carls")
    assert step(stage, bystander, "submit_jobs", Jsonb([wire])), "a submission waits"
    assert step(stage, bystander, "lease_jobs", "carls", "me", 1, LEASE_MS), "a lease waits"
    ((job, token, *_),) = bystander.answer.rows
    claims = cast.claims(Lease(job, token), 0, machine=2)
    assert step(stage, bystander, "commit_claims", *claims.arguments), "a commit waits"
    assert [0] == bystander.answer.rows[0][0]
    assert step(stage, bystander, "read_quotas"), "a read waits"
    assert step(stage, bystander, "cancel_job", job), "a cancellation waits"
    assert {"owner"}.issuperset(stage.waiting())


def test_a_new_quota_waits_for_nobody_and_nobody_for_it(cast: Cast) -> None:
    for what in OPEN:
        session = opened(cast, what)
        start(cast.owner, "set_quota", *ANN, cores(3))
        cast.stage.settle(cast.owner)
        with others_go_on(cast):
            assert cast.owner.is_done, what
        for name in ("other", "both", session.name):
            cast.stage.sessions[name].do("ROLLBACK")

        assert [(False,)] == cast.owner.answer.rows
        assert [(True,)] == cast.count().rows, what
        assert [] == wrongs(cast.stage), what
        assert [(True,)] == do(cast.owner, "remove_quota", *ANN)
        cast.repair()


@pytest.mark.parametrize(("what", "scope"), [("places", SCOPES[0]), ("ends", SCOPES[1])])
def test_others_go_on_while_a_quota_waits_to_count(
    cast: Cast, what: str, scope: tuple[str, str]
) -> None:
    session = opened(cast, what)
    do(cast.owner, "set_quota", *scope, cores(30))

    start(cast.owner, "count_quota", *scope)
    with others_go_on(cast):
        assert cast.owner.answer.sqlstate in {"", "55P03"}
    session.do("COMMIT")

    assert [(True,)] == cast.count(scope).rows
    assert [] == wrongs(cast.stage)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope[0])
@pytest.mark.parametrize("change", ["set", "remove"])
def test_others_go_on_while_a_quota_that_counts_is_changed(
    cast: Cast, change: str, scope: tuple[str, str]
) -> None:
    do(cast.owner, "set_quota", *scope, cores(30))
    assert [(True,)] == cast.count(scope).rows
    session = opened(cast, "places")

    if change == "set":
        start(cast.owner, "set_quota", *scope, cores(20))
    else:
        start(cast.owner, "remove_quota", *scope)
    cast.stage.settle()
    with others_go_on(cast):
        session.do("COMMIT")

    assert [(True,)] == cast.owner.answer.rows
    assert [] == wrongs(cast.stage)


@pytest.mark.parametrize("verb", ["set_quota", "count_quota", "remove_quota"])
def test_others_go_on_while_the_owner_leaves_a_transaction_open(cast: Cast, verb: str) -> None:
    if verb != "set_quota":
        do(cast.owner, "set_quota", *ANN, cores(30))
    limits = [cores(30)] if verb == "set_quota" else []
    cast.owner.do("BEGIN")
    assert step(cast.stage, cast.owner, verb, *ANN, *limits)

    with others_go_on(cast):
        assert [] == [name for name in cast.stage.waiting() if name != "owner"]
    cast.owner.do("COMMIT")

    assert [] == wrongs(cast.stage)


def test_a_login_that_only_looks_keeps_no_quota_from_being_set(stage: Stage, cast: Cast) -> None:
    """What a reader may lock, it may hold for as long as it likes."""
    reader = stage.session("reader", "omega_reader")
    reader.do("BEGIN")
    for table in ("job", "quota", "quota_shard", "allocation", "process"):
        reader.do(f"SELECT count(*) FROM omega.{table}")
    for verb, *more in (("set_quota", cores(3)), ("count_quota",), ("remove_quota",)):
        cast.owner.start(calling(verb), [*ANN, *more])
        stage.settle()
        assert cast.owner.is_done, verb
        assert not cast.owner.answer.sqlstate, cast.owner.answer.said
    assert not ask(cast.submitter, "cancel_job", cast.ann.job).sqlstate
