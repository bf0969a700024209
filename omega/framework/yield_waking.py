"""Which parked jobs would have room if lower precedences made way.

Goal     Wake a job of a scheduler that preempts when tasks arrive that yield to it, or when the
         gap of precedence is lowered.
Promise  A look reads what yields to one precedence, in one call. Precedences are looked at in turn,
         the highest first, and only after the cell has changed. Looks take at most a twentieth of
         the process's time. A job is woken at most once in one state of the machines. After it was
         woken it is left alone for a number of looks, which doubles each time, up to 64.
Source   docs/decisions/0037-who-makes-way.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Effects, called
from omega.framework.quota_admission import QuotaAdmission
from omega.framework.wakeable import wakeable
from omega.model.arrays import Sequences, integers
from omega.model.occupants import Yielding
from omega.store.leases import ParkedJob

REST: Final = 19
"""How many times as long as a look takes there is none after it."""
DOUBLINGS_MAX: Final = 6
"""After so many times a job is woken, the looks between two times are not doubled any more."""


@dataclass(frozen=True)
class _Woken:
    """How a job was woken last."""

    times: int
    from_look: int
    """The first look at which it may be woken again."""
    state: bytes
    """A hash of the revisions of all machines."""


class YieldWaking:
    """Looks for parked jobs to which enough yields."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sequence: Sequences = integers()
        self._generation = -1
        self._changed = False
        self._above: int | None = None
        """The precedence of the last look, if lower ones have not been looked at since."""
        self._looks = 0
        self._began_s = self._rests_until_s = clock.now()
        self._woken: dict[int, _Woken] = {}

    def is_due(self, view: View, *, gained: bool) -> bool:
        """Return whether to look: something has changed, and the last look was long enough ago.

        Tasks that yield arrive by commits, which raise the sequences of their machines. `gained`
        says whether there is more room, or more of a quota, than before.
        """
        if view.generation != self._generation:  # machines have joined, or the gap has changed
            self._generation = view.generation
            self._woken.clear()
            gained = True
        elif (view.sequence > self._sequence).any():
            gained = True
        self._sequence = view.sequence.copy()
        self._changed = self._changed or gained
        is_needed = self._changed or self._above is not None
        self._began_s = self._clock.now()
        return is_needed and self._began_s >= self._rests_until_s

    def look(
        self, view: View, parked: Sequence[ParkedJob], admission: QuotaAdmission
    ) -> Effects[list[int]]:
        """Return the jobs of the next precedence that fit if all that yields to them is evicted.

        `parked`, highest precedence first, are all jobs that what yields could help.
        """
        if self._above is None:
            self._changed = False
        left = [job for job in parked if self._above is None or job.spec.precedence < self._above]
        self._above = None
        if not left:
            return []
        precedence = left[0].spec.precedence
        yielding = yield from called("yielding", lambda store: store.yielding(precedence))
        if len(yielding) and left[-1].spec.precedence < precedence:
            self._above = precedence  # to a lower one, less yields: nothing does if nothing did
        fit = self._fit(
            view, [j for j in left if j.spec.precedence == precedence], yielding, admission
        )
        now_s = self._clock.now()
        self._rests_until_s = now_s + REST * (now_s - self._began_s)
        return fit

    def _fit(
        self,
        view: View,
        jobs: Sequence[ParkedJob],
        yielding: Yielding,
        admission: QuotaAdmission,
    ) -> list[int]:
        self._looks += 1
        if not len(yielding):
            return []
        state = blake2b(view.revision.tobytes(), digest_size=16).digest()
        others = [job for job in jobs if not self._was_tried(job.id, state)]
        rested = [job for job in others if self._has_rested(job.id)]
        if len(rested) < len(others):
            self._changed = True  # they are looked at when they have rested
        with view.tentative():
            view.assume_removed(yielding.machine, yielding.amounts)
            fit = wakeable(view, rested, admission)
        if fit:
            self._forget_old()
        for job in fit:
            self._note(job, state)
        return fit

    def _was_tried(self, job: int, state: bytes) -> bool:
        return job in self._woken and self._woken[job].state == state

    def _has_rested(self, job: int) -> bool:
        return job not in self._woken or self._looks >= self._woken[job].from_look

    def _forget_old(self) -> None:
        """Forget jobs that have not been woken for long."""
        longest = 2**DOUBLINGS_MAX
        self._woken = {
            number: woken
            for number, woken in self._woken.items()
            if self._looks < woken.from_look + longest
        }

    def not_woken(self, jobs: Iterable[int]) -> None:
        """Note that these of the jobs that were to be woken were not: they are looked at again."""
        for job in jobs:
            if self._woken.pop(job, None) is not None:
                self._changed = True

    def _note(self, job: int, state: bytes) -> None:
        """Record that a job is woken."""
        times = self._woken[job].times + 1 if job in self._woken else 1
        rest = 2 ** min(times, DOUBLINGS_MAX)
        self._woken[job] = _Woken(times, self._looks + rest, state)
