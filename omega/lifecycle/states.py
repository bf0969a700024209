"""The life of a job as one table.

Goal     One table of which state follows which, for code, database and documentation.
Promise  The CHECK on the job table and the functions in Postgres follow this table (tests).
Source   docs/decisions/0004-the-job-queue.md.
"""

from enum import Enum


class State(Enum):
    """The state of a job."""

    PENDING = "pending"  # in the queue, for the first time or with some tasks left unplaced
    PLANNING = "planning"  # one scheduler replica holds its lease; placed tasks keep running
    PARKED = "parked"  # set aside with a reason until a change could help
    RUNNING = "running"  # every task runs or has ended
    SUCCEEDED = "succeeded"  # every task has ended, and no program of one has failed
    FAILED = "failed"  # it is over, and the program of a task has failed
    CANCELLED = "cancelled"


class Trigger(Enum):
    """What changes the state of a job."""

    TAKE = "take"  # a scheduler leases it
    RECALL = "recall"  # a round leases it: while it runs, or from the holder of the round before
    PLACE_ALL = "place_all"  # a commit grants the last task
    HAND_BACK = "hand_back"  # the attempt ends with tasks left, or the scheduler shuts down
    LEASE_EXPIRED = "lease_expired"
    GO_ON = "go_on"  # the lease ends, in any way, while every task runs or has ended
    PARK = "park"
    WAKE = "wake"
    END_ALL = "end_all"  # the last task ends
    CANCEL = "cancel"
    FAIL = "fail"  # the last task ends and one has failed, or a task of a gang fails
    HOLD = "hold"  # a user sets it aside until its release; a lease on it is lost
    RELEASE = "release"
    REQUEUE = "requeue"  # a user has it tried as soon as possible
    EVICT = "evict"  # a claim evicts a task, or a task loses its place with its machine


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
    (State.PENDING, Trigger.FAIL): State.FAILED,
    (State.PLANNING, Trigger.FAIL): State.FAILED,
    (State.PARKED, Trigger.FAIL): State.FAILED,
    (State.RUNNING, Trigger.FAIL): State.FAILED,
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
    (State.PENDING, Trigger.HOLD): State.PARKED,
    (State.PLANNING, Trigger.HOLD): State.PARKED,
    (State.PARKED, Trigger.HOLD): State.PARKED,
    (State.PARKED, Trigger.RELEASE): State.PENDING,
    (State.PARKED, Trigger.REQUEUE): State.PENDING,
    (State.PENDING, Trigger.REQUEUE): State.PENDING,
}

FINAL = frozenset(State) - {state for state, _ in MOVES}


class ParkReason(Enum):
    """Why a job is parked."""

    NEVER_FITS = "never_fits"  # a task asks for more than any machine has
    UNKNOWN_ATTRIBUTE = "unknown_attribute"  # no machine has the attribute at all
    NO_MACHINE_MATCHES = "no_machine_matches"  # machines have the attribute, none qualifies
    GANG_TOO_LARGE = "gang_too_large"  # even the empty cell could not hold the gang
    NO_ROOM = "no_room"  # it could fit, but the cell is full for it now
    CONFLICTS = "conflicts"  # many attempts in a row were refused
    OVER_QUOTA = "over_quota"  # it would exceed the quota of its tenant or kind of scheduler
    UNREADABLE = "unreadable"  # this version cannot read its wire form
    HELD = "held"  # a user holds it; schedulers neither give this reason nor wake such a job

    @property
    def is_permanent(self) -> bool:
        """Whether freed room cannot help, but at most new or changed machines."""
        passing = (ParkReason.NO_ROOM, ParkReason.CONFLICTS, ParkReason.OVER_QUOTA)
        return self not in passing


OF_SCHEDULERS = tuple(reason for reason in ParkReason if reason is not ParkReason.HELD)
"""The reasons for which a scheduler parks a job."""
