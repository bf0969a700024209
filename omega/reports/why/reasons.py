"""The reasons why a job is not placed: a closed list, the same for screens, scripts and pages.

Goal     One word for what holds a job up, that a script may compare with.
Promise  Every answer of `why` has exactly one of these. `is_permanent` means that neither freed
         room, nor evictions, nor machines that open again can help: the spec or the machines must
         change.
Source   omega.lifecycle.states, ParkReason, whose words are kept; docs/decisions/0054.
"""

from enum import Enum

from omega.lifecycle.states import ParkReason


class Reason(Enum):
    """What holds a job up now."""

    PLACED = "placed"  # nothing: every task has a place or has ended
    ENDED = "ended"  # it is over
    UNREADABLE = "unreadable"  # this version cannot read it

    UNKNOWN_ATTRIBUTE = "unknown_attribute"  # no machine has an attribute that it requires
    NO_MACHINE_MATCHES = "no_machine_matches"  # machines have the attribute, none qualifies
    NEVER_FITS = "never_fits"  # a task asks for more than any machine has
    GANG_TOO_LARGE = (
        "gang_too_large"  # the empty cell could not hold the gang, or a commit not place it
    )

    HELD = "held"  # a user holds it
    NO_SCHEDULER = "no_scheduler"  # no scheduler of its kind is at work
    OVER_QUOTA = "over_quota"  # what is left of a quota does not suffice
    MACHINES_CLOSED = "machines_closed"  # it fits only on machines that are down or draining
    OVER_NOTICE = "over_notice"  # it fits once the notices of machines that shrank have ended
    ONE_PER_MACHINE = "one_per_machine"  # each machine with room runs a task of it already
    NOT_PREEMPTIBLE = "not_preemptible"  # its precedence suffices, but what runs is protected
    GANG_SHORT = "gang_short"  # there is room for some of the gang, and not for enough
    ONE_KIND_SHORT = "one_kind_short"  # but for one kind of resource it would fit
    NO_ROOM = "no_room"  # the cell is full for it

    TO_EVICT = "to_evict"  # there is room once its scheduler has evicted what yields to it
    PATIENT = "patient"  # there is room, and it waits for machines that it prefers
    BEING_PLANNED = "being_planned"  # a scheduler holds its lease
    CONFLICTS = "conflicts"  # there is room, and its last claims were refused
    BEHIND_OTHERS = "behind_others"  # there is room, and others are leased before it
    BACKING_OFF = "backing_off"  # there is room, and it may not be leased yet
    TO_BE_WOKEN = "to_be_woken"  # it is parked, and fits now
    QUEUED = "queued"  # there is room, and nothing is known to be before it
    WOULD_FIT = "would_fit"  # a spec that is not submitted, for which there is room

    @property
    def is_permanent(self) -> bool:
        """Whether only another spec or other machines can help."""
        return self in _PERMANENT

    @property
    def has_room(self) -> bool:
        """Whether the job could be placed at this moment, as far as machines and quotas go."""
        return self in _HAVE_ROOM


_PERMANENT = frozenset(
    {
        Reason.UNKNOWN_ATTRIBUTE,
        Reason.NO_MACHINE_MATCHES,
        Reason.NEVER_FITS,
        Reason.GANG_TOO_LARGE,
    }
)
_HAVE_ROOM = frozenset(
    {
        Reason.PATIENT,
        Reason.BEING_PLANNED,
        Reason.CONFLICTS,
        Reason.BEHIND_OTHERS,
        Reason.BACKING_OFF,
        Reason.TO_BE_WOKEN,
        Reason.QUEUED,
        Reason.WOULD_FIT,
    }
)
_FULL = frozenset(
    {
        Reason.MACHINES_CLOSED,
        Reason.OVER_NOTICE,
        Reason.ONE_PER_MACHINE,
        Reason.NOT_PREEMPTIBLE,
        Reason.GANG_SHORT,
        Reason.ONE_KIND_SHORT,
        Reason.NO_ROOM,
    }
)


def agrees(parked: ParkReason, now: Reason) -> bool:
    """Return whether the reason for which a job was parked still holds, as far as it says."""
    if parked is ParkReason.NO_ROOM:
        return now in _FULL
    return str(parked.value) == str(now.value)
