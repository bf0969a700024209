"""What rounds tell people of training jobs: shares, types, preemptions, and who makes no step."""

from pathlib import Path

import pytest

from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome
from omega.model.round_summary import JobShare, RoundSummary
from omega.store.rounds import LastRound
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job
from tests.unit.schedulers.ml_gpu.rounds_at_work import (
    MODELS,
    RunningSchedulers,
    machines,
    training,
)
from tests.unit.schedulers.ml_gpu.test_live import K80, V100, a_table


def told(at_work: RunningSchedulers) -> tuple[LastRound, RoundSummary, dict[int, JobShare]]:
    (last,) = at_work.store.last_rounds()
    assert last.summary is not None
    return last, last.summary, {it.job: it for it in last.summary.jobs}


def make_steps(at_work: RunningSchedulers, *idle: int, made: int = 100) -> None:
    """Have what runs make steps for a second, but for jobs that make none."""
    jobs = integers(sorted(at_work.running().keys() & set(at_work.jobs)))
    before = at_work.store.progress(jobs)
    makes = [0 if job in idle else made for job in jobs.tolist()]
    at_work.store.report_progress(jobs, before.done + makes, before.run_ms + 1_000)


def test_a_round_tells_who_trains_on_what_how_fast_and_with_which_share(tmp_path: Path) -> None:
    jobs = [training(4, model=MODELS[3]), training(2, model=MODELS[0])]
    at_work = RunningSchedulers(
        machines(K80, 1), machines(V100, 1, first=2), jobs=jobs, throughputs=a_table(tmp_path)
    )
    at_work.play()
    last, summary, shares = told(at_work)

    rates = {4: {K80: 4.0, V100: 32.0}, 2: {K80: 2.0, V100: 2.4}}
    on = at_work.running()

    assert (1, 1_000, "max_min_fairness_perf") == (last.number, last.length_ms, summary.policy)
    assert {K80, V100} == {it.type for it in shares.values()}
    for share in shares.values():
        assert {share.type} == on[share.job]
        assert rates[share.gpus][str(share.type)] == pytest.approx(share.rate)
        assert share.share
        assert share.pace == pytest.approx(
            sum(part * rates[share.gpus][name] for name, part in share.share.items())
        )
    assert {(it.name, it.gpus, it.used) for it in summary.types} == {
        (str(it.type), 4, it.gpus) for it in shares.values()
    }


def test_preemptions_are_counted_with_the_round_that_did_it() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(4), training(4)])
    lost: dict[int, list[int]] = {job: [] for job in at_work.jobs}
    before: dict[int, set[str]] = {}
    for number in range(1, 13):
        at_work.play()
        make_steps(at_work)
        now = at_work.running()
        for job in before.keys() - now.keys():
            lost[job].append(number)
        before = now
        _, _, shares = told(at_work)

        assert {job: len(its) for job, its in lost.items()} == {
            job: shares[job].preempted for job in lost
        }
    assert all(its for its in lost.values())
    assert {job: its[-1] for job, its in lost.items()} == {
        job: shares[job].preempted_in for job in lost
    }


def test_gpu_time_that_was_promised_and_had_is_counted_since_a_job_came() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(4), training(4)])
    for _ in range(20):
        at_work.play()
        make_steps(at_work)
    _, _, shares = told(at_work)

    for share in shares.values():
        assert 0.4 < share.had_s / share.age_s < 0.6
        assert abs(share.promised_s - share.had_s) < 2


class RefusesEvictions(PassThrough):
    """Fills the machine just before GPUs are taken from a job on it."""

    is_full = False

    def commit(self, transaction: Transaction) -> Outcome:
        if len(transaction.claims.evictions.job) and not self.is_full:
            self.is_full = True
            a_running_job(self._store, a_spec(1, cpu_milli=31_000), [1], cpu_milli=31_000)
        return super().commit(transaction)


def test_a_preemption_that_the_commit_refused_is_not_counted_any_more() -> None:
    jobs = [training(4, cpu_milli=250), training(4, cpu_milli=2_000)]
    at_work = RunningSchedulers(machines(K80, 1), jobs=jobs)
    at_work.process = at_work.a_process(RefusesEvictions)
    at_work.play()
    (stays,) = at_work.running()
    for _ in range(6):
        at_work.play()
        make_steps(at_work)
    _, _, shares = told(at_work)

    assert stays in at_work.running()
    assert shares[stays].preempted <= 1  # one may be planned just now


def test_a_model_that_nobody_knows_and_that_makes_no_step_gets_no_share(tmp_path: Path) -> None:
    jobs = [training(4, model="unheard of"), training(4, model=MODELS[0])]
    table = a_table(tmp_path)
    at_work = RunningSchedulers(
        machines(K80, 1), machines(V100, 1, first=2), jobs=jobs, throughputs=table
    )
    unknown, known = at_work.jobs
    for _ in range(30):
        at_work.play()
        make_steps(at_work, unknown)
    _, _, shares = told(at_work)

    assert shares[unknown].is_stalled
    assert {} == shares[unknown].share
    assert not shares[known].is_stalled
    assert sum(shares[known].share.values()) > 0.99


def test_a_model_that_nobody_knows_is_learnt_if_it_makes_steps_on_one_type() -> None:
    jobs = [training(4, model="unheard of"), training(4, model=MODELS[0])]
    at_work = RunningSchedulers(machines(K80, 1), machines(V100, 1, first=2), jobs=jobs)
    unknown = at_work.jobs[0]
    for _ in range(30):
        at_work.play()
        on = at_work.running()
        make_steps(at_work, *([unknown] if on.get(unknown) == {K80} else []))
    _, _, shares = told(at_work)

    assert not shares[unknown].is_stalled
    assert {V100} == shares[unknown].share.keys()


def test_a_model_of_the_table_is_given_all_the_time_that_it_takes(tmp_path: Path) -> None:
    at_work = RunningSchedulers(
        machines(K80, 1), jobs=[training(4, model=MODELS[0])], throughputs=a_table(tmp_path)
    )
    for _ in range(12):
        at_work.play()
        make_steps(at_work, *at_work.jobs)
    _, _, shares = told(at_work)

    assert not shares[at_work.jobs[0]].is_stalled
    assert shares[at_work.jobs[0]].share
