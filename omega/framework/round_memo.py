"""Memos of rounds and ticks: the jobs that the next one looks for, and the scheduler's own part.

Goal     Save and read memos in one way, for rounds and for elastic jobs.
Promise  A memo that a store refuses does not end the process: less of it is saved, and each refusal
         is reported. What `save_memo` cannot have written is left out of what is read.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md, 0043-elastic-jobs.md.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from omega.errors import BadInput
from omega.events import MemoRefused, Sink
from omega.framework.effects import Effects, called
from omega.model.round_summary import RoundSummary
from omega.store.protocols import SchedulerStore

ID_MAX: Final = 2**63 - 1
"""The largest job id that a store accepts; a memo may hold any number."""


def save_memo(
    kind: str,
    number: int,
    jobs: Sequence[int],
    plan: Mapping[str, object],
    sink: Sink,
    summary: RoundSummary | None = None,
) -> Effects[bool]:
    """Save a memo for the next round; return whether it was saved: not if that has begun already.

    Jobs may need a larger memo than a store accepts. Without `summary` people are told nothing of
    the round; without `plan` the scheduler starts without a
    memo; without `jobs` the next round does not know of any.
    """
    whole: list[dict[str, object]] = [{"jobs": jobs, "plan": plan}, {"jobs": jobs}, {}]
    if summary is not None:
        whole.insert(0, {**whole[0], "told": summary.row()})
    for memo in whole:
        try:
            return (yield from called("note", partial(_note, kind, number, memo)))
        except BadInput as refusal:
            sink(MemoRefused(refusal.sentence))
    return False


def read_memo(memo: Mapping[str, object]) -> tuple[list[int] | None, Mapping[str, object]]:
    """Return the job ids and the plan of a memo; the ids are None if it has none."""
    jobs, plan = memo.get("jobs"), memo.get("plan")
    ids = None
    if isinstance(jobs, list):
        ids = [job for job in jobs if type(job) is int and 0 < job <= ID_MAX]
    return ids, plan if isinstance(plan, dict) else {}


def _note(kind: str, number: int, memo: Mapping[str, object], store: SchedulerStore) -> bool:
    return store.note_round(kind, number, memo)
