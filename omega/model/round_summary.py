"""What a round tells people: its policy, the use of GPUs by type, and each training job's share.

Goal     Show what a scheduler has promised to whom, though only it understands its memo.
Promise  What JSON holds of a summary is the summary. Of one that no scheduler of ours wrote, what
         cannot be read is left out: no number is negative, and no name is longer than a name.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final, TypeGuard

from omega.limits import LIMITS

AMOUNT_MAX: Final = 1e15
"""More seconds, or steps a second, than there will be."""


@dataclass(frozen=True)
class TypeUse:
    """GPUs of one type, as a round gives them out."""

    name: str
    gpus: int
    """Those that training jobs may have: whole, on open machines, held by no other job."""
    used: int


@dataclass(frozen=True)
class JobShare:
    """One training job, as a round sees it."""

    job: int
    gpus: int
    """That it uses at once."""
    type: str | None
    """On which it trains in this round; None: it waits."""
    rate: float
    """Steps a second that are believed of it there; 0 if it waits."""
    share: Mapping[str, float]
    """Promised parts of its time, by type; nothing if shares were computed before it came."""
    pace: float
    """Steps a second that come of these parts."""
    age_s: float
    """Since a round saw it first ..."""
    promised_s: float
    """... the seconds of GPU time that were promised to it ..."""
    had_s: float
    """... and those that it has had."""
    preempted: int
    """How often a round has taken its GPUs away ..."""
    preempted_in: int
    """... and the number of the last one that did; 0: none."""
    is_stalled: bool
    """Whether it has made no step on any type, and no table knows its rate."""


@dataclass(frozen=True)
class RoundSummary:
    """A round in a few numbers, and its jobs ascending by id."""

    policy: str
    types: Sequence[TypeUse]
    jobs: Sequence[JobShare]

    def row(self) -> dict[str, object]:
        """Return the summary as JSON types, job by job in the order of the fields."""
        names = [it.name for it in self.types]
        return {
            "policy": self.policy,
            "types": [asdict(it) for it in self.types],
            "jobs": [
                [
                    *(it.job, it.gpus, None if it.type is None else names.index(it.type), it.rate),
                    [it.share.get(name, 0.0) for name in names],
                    *(it.pace, it.age_s, it.promised_s, it.had_s, it.preempted, it.preempted_in),
                    it.is_stalled,
                ]
                for it in self.jobs
            ],
        }

    @classmethod
    def of(cls, row: object) -> "RoundSummary | None":
        """Read a summary; None if it is none. Jobs and types that cannot be read are left out."""
        if not isinstance(row, Mapping):
            return None
        policy, types, jobs = (row.get(name) for name in ("policy", "types", "jobs"))
        if not _is_name(policy) or not isinstance(types, list) or not isinstance(jobs, list):
            return None
        uses = [use for each in types if (use := _type_use(each)) is not None]
        if len(uses) < len(types):
            return None  # places of types are counted
        names = [use.name for use in uses]
        read = (_job_share(each, names) for each in jobs)
        return cls(policy, uses, [share for share in read if share is not None])


def _type_use(row: object) -> TypeUse | None:
    told = row if isinstance(row, Mapping) else {}
    name, gpus, used = (told.get(field.name) for field in fields(TypeUse))
    if not (_is_text(name) and _is_whole(gpus) and _is_whole(used)):
        return None
    return TypeUse(name, gpus, used)


def _job_share(row: object, types: Sequence[str]) -> JobShare | None:
    if not isinstance(row, list) or len(row) != len(fields(JobShare)):
        return None
    job, gpus, at, rate, parts, pace, age_s, promised_s, had_s, times, number, is_stalled = row
    counts, amounts = (job, gpus, times, number), (rate, pace, age_s, promised_s, had_s)
    is_place = at is None or (_is_whole(at) and at < len(types))
    is_read = is_place and all(map(_is_whole, counts)) and all(map(_is_amount, amounts))
    if not is_read or not isinstance(parts, list) or len(parts) != len(types):
        return None
    if not all(map(_is_amount, parts)):
        return None
    return JobShare(
        job=job,
        gpus=gpus,
        type=None if at is None else types[at],
        rate=float(rate),
        share={name: float(part) for name, part in zip(types, parts, strict=True) if part},
        pace=float(pace),
        age_s=float(age_s),
        promised_s=float(promised_s),
        had_s=float(had_s),
        preempted=times,
        preempted_in=number,
        is_stalled=is_stalled is True,
    )


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= LIMITS.name_length_max


def _is_name(value: object) -> TypeGuard[str]:
    return _is_text(value) and bool(value)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_amount(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= AMOUNT_MAX  # which no NaN is
