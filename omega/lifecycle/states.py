"""The life of a job as one table.

Goal     One place that says which state follows which, for code, database and documentation.
Promise  The CHECK on the job table and the functions in Postgres follow this table (tests).
Source   docs/decisions/0004-the-job-queue.md.
"""

from enum import Enum


class State(Enum):
    """Where a job stands."""

    PENDING = "pending"  # waits for a scheduler, for the first time or for what is left of it
    PLANNING = "planning"  # one scheduler replica holds its lease; what has a place runs on
    PARKED = "parked"  # waits for a change that could help; says why
    RUNNING = "running"  # every task has a place or is over
    SUCCEEDED = "succeeded"  # every task is over
    CANCELLED = "cancelled"


class Trigger(Enum):
    """What moves a job."""

    TAKE = "take"  # a scheduler leases it
    RECALL = "recall"  # a round leases it: while it runs, or from the holder of the round before
    PLACE_ALL = "place_all"  # a commit grants the last task
    HAND_BACK = "hand_back"  # the attempt ends with tasks left, or the scheduler shuts down
    LEASE_EXPIRED = "lease_expired"
    GO_ON = "go_on"  # the lease ends, in whatever way, with every task in its place
    PARK = "park"
    WAKE = "wake"
    END_ALL = "end_all"  # the last task is over
    CANCEL = "cancel"
    EVICT = "evict"  # a task loses its place: to a higher precedence, or with its machine


MOVES: dict[tuple[State, Trigger], State] = {
    (State.PENDING, Trigger.TAKE): State.PLANNING,
    (State.PENDING, Trigger.CANCEL): State.CANCELLED,
    (State.PLANNING, Trigger.PLACE_ALL): State.RUNNING,
    (State.PLANNING, Trigger.HAND_BACK): State.PENDING,
    (State.PLANNING, Trigger.LEASE_EXPIRED): State.PENDING,
    (State.PLANNING, Trigger.PARK): State.PARKED,
    (State.PLANNING, Trigger.CANCEL): State.CANCELLED,
    (State.PARKED, Trigger.WAKE): State.PENDING,
    (State.PARKED, Trigger.CANCEL): State.CANCELLED,
    (State.PLANNING, Trigger.GO_ON): State.RUNNING,
    (State.PLANNING, Trigger.END_ALL): State.SUCCEEDED,
    (State.RUNNING, Trigger.RECALL): State.PLANNING,
    (State.PLANNING, Trigger.RECALL): State.PLANNING,
    (State.RUNNING, Trigger.END_ALL): State.SUCCEEDED,
    (State.RUNNING, Trigger.CANCEL): State.CANCELLED,
    (State.RUNNING, Trigger.EVICT): State.PENDING,
    (State.PENDING, Trigger.EVICT): State.PENDING,
    (State.PLANNING, Trigger.EVICT): State.PLANNING,
    (State.PARKED, Trigger.EVICT): State.PARKED,
}

FINAL = frozenset(State) - {state for state, _ in MOVES}


class ParkReason(Enum):
    """Why a job is parked. Kinds of reason: never feasible, misconfigured, waiting, conflict."""

    NEVER_FITS = "never_fits"  # a task asks for more than any machine has
    UNKNOWN_ATTRIBUTE = "unknown_attribute"  # no machine has the attribute at all
    NO_MACHINE_MATCHES = "no_machine_matches"  # machines have the attribute, none qualifies
    GANG_TOO_LARGE = "gang_too_large"  # even the empty cell could not hold the gang
    NO_ROOM = "no_room"  # it could fit, but the cell is full for it now
    CONFLICTS = "conflicts"  # others were always faster
    OVER_QUOTA = "over_quota"  # its tenant or its kind of scheduler holds all that it may
    UNREADABLE = "unreadable"  # its description is not one that this program can read

    @property
    def is_permanent(self) -> bool:
        """Whether only new or changed machines can help, not freed room."""
        passing = (ParkReason.NO_ROOM, ParkReason.CONFLICTS, ParkReason.OVER_QUOTA)
        return self not in passing
