"""How long activities took: the mean by job name and phase, as far as it was seen.

Goal     Predict from what happened, never from what a spec says.
Promise  An activity counts once. Without history nothing is predicted: a job keeps the workers that
         its user chose. The history of at most `NAMES_MAX` names is kept, those seen last.
Source   Omega (EuroSys 2013), section 6: a model of the job from its history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from schedulers.elastic.model import PhaseLeft

NAMES_MAX: Final = 4_000
"""Names of jobs whose history is kept; a name has at most 200 characters, a memo 4 MiB."""
ACTIVITIES_MAX: Final = 10**15
BUSY_MS_MAX: Final = 10**18

Totals = tuple[int, int]
"""Activities that are done, and the milliseconds that workers took for them."""


@dataclass
class History:
    """Activities done and the time that they took, by job name and phase."""

    seen: dict[str, dict[str, Totals]] = field(default_factory=dict)
    """By job name and by phase; names in the order in which they were last seen."""

    def add(self, name: str, phase: str, activities: int, busy_ms: int) -> None:
        """Count further activities of a phase of the jobs of this name."""
        assert min(activities, busy_ms) >= 0
        if not activities:
            return
        phases = self.seen.pop(name, {})
        before, before_ms = phases.get(phase, (0, 0))
        phases[phase] = (
            min(before + activities, ACTIVITIES_MAX),
            min(before_ms + busy_ms, BUSY_MS_MAX),
        )
        self.seen[name] = phases
        while len(self.seen) > NAMES_MAX:
            del self.seen[next(iter(self.seen))]

    def mean_s(self, name: str, phase: str) -> float | None:
        """Return the mean duration of an activity; None if none was seen."""
        activities, busy_ms = self.seen.get(name, {}).get(phase, (0, 0))
        return busy_ms / activities / 1_000 if activities else None

    def phases_left(self, name: str, left: Sequence[tuple[str, int]]) -> tuple[PhaseLeft, ...]:
        """Return what is left of a job: of each phase its name and the activities not yet done."""
        return tuple(PhaseLeft(activities, self.mean_s(name, phase)) for phase, activities in left)

    def to_memo(self) -> list[object]:
        """Return the history as JSON types."""
        return [
            [name, {phase: list(totals) for phase, totals in phases.items()}]
            for name, phases in self.seen.items()
        ]

    @classmethod
    def from_memo(cls, memo: object) -> "History":
        """Return the history of a memo; what `to_memo` cannot have written is left out."""
        history = cls()
        for entry in memo if isinstance(memo, list) else []:
            match entry:
                case [str(name), Mapping() as phases]:
                    for phase, totals in phases.items():
                        match totals:
                            case [int(activities), int(busy_ms)] if (
                                0 <= activities <= ACTIVITIES_MAX and 0 <= busy_ms <= BUSY_MS_MAX
                            ):
                                history.add(name, str(phase), activities, busy_ms)
        return history
