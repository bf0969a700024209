"""What the sessions of a history were told, kept apart from the cell: nothing of it may be lost.

A fact counts once it is acknowledged: when its statement has answered and its transaction, if it
was left open, has committed. What is taken back is forgotten.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from tests.attack.calls import Commit, Outcome
from tests.attack.machine_rows import places, sequences
from tests.attack.sessions import Stage

Fact = Callable[["Shadow"], None]


@dataclass
class Shadow:
    """The attack's own books."""

    jobs: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    grants: "Counter[tuple[int, int, int]]" = field(default_factory=Counter)
    """Job, task and machine."""
    evictions: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    ends: "Counter[str]" = field(default_factory=Counter)
    """How many tasks ended, by cause."""
    moves: "Counter[int]" = field(default_factory=Counter)
    """By machine: the commits that were granted room, and the changes of state and size."""
    answers: dict[UUID, tuple[Commit, Outcome]] = field(default_factory=dict)
    granted: set[tuple[UUID, int]] = field(default_factory=set)
    """Which claims, by their transaction and place."""
    wrong: list[str] = field(default_factory=list)

    def note(self, transaction: Commit, outcome: Outcome) -> None:
        """Keep what a commit was answered; an answer given again is no new fact."""
        _, known = self.answers.get(transaction.id, (transaction, None))
        if outcome.replayed:
            # If the first is not acknowledged yet, whoever was told of it was told the truth. And
            # one of several at once may be refused all, and leave the record to another.
            if known is not None and known.grants and not outcome.is_like(known):
                self.wrong.append(f"{transaction.id} was answered {known}, and then {outcome}")
            return
        # It is new, or was taken back, or its record has been removed.
        if known is None or outcome.grants:
            self.answers[transaction.id] = (transaction, outcome)
        for n in outcome.grants:
            claim = transaction.claims[n]
            if (transaction.id, n) in self.granted:
                self.wrong.append(f"{claim} of {transaction.id} was granted twice")
            self.granted.add((transaction.id, n))
            self.grants[claim.lease.job, claim.task, outcome.landed[n]] += 1
        self.moves.update({outcome.landed[n] for n in outcome.grants})
        self.evictions.update(outcome.evicted)


ENDED = "SELECT job_id, task, machine_id, cause FROM omega.ended_task"


def disagreements(shadow: Shadow, stage: Stage) -> list[str]:
    """Compare what was told with what there is, when no transaction is open any more."""
    ended = stage.see(ENDED)
    live = Counter(places(stage))
    over = Counter((job, task, machine) for job, task, machine, _ in ended)
    causes = Counter(cause for *_, cause in ended)
    evicted = Counter((job, task) for job, task, _, cause in ended if cause == "evicted")
    by_hand = sum(cause == "ended" and job not in shadow.cancelled for job, _, _, cause in ended)
    states: dict[int, str] = dict(stage.see("SELECT id, state::text FROM omega.job"))
    checks = {
        "every job that was acknowledged is there, and no other": (shadow.jobs, set(states)),
        "every grant runs or is over": (shadow.grants, live + over),
        "evictions are those that were told": (shadow.evictions, evicted),
        "losses are those that were told": (shadow.ends["lost"], causes["lost"]),
        "what a shrink ended was told": (shadow.ends["resized"], causes["resized"]),
        "sequences": (
            {machine: shadow.moves[machine] for machine in sequences(stage)},
            sequences(stage),
        ),
        "what was cancelled is": (
            {"cancelled"} if shadow.cancelled else set(),
            {states.get(job) for job in shadow.cancelled},
        ),
    }
    found = [
        f"{what}: {told} told, {is_so}" for what, (told, is_so) in checks.items() if told != is_so
    ]
    if not by_hand <= shadow.ends["ended"] <= causes["ended"]:
        found.append(f"ends: {shadow.ends['ended']} told, {by_hand} to {causes['ended']} are there")
    return [*shadow.wrong, *found]
