"""What a user may change of a job that waits.

Goal     Let users hold a job, have it tried now, and change its precedence, without a new one.
Promise  No call touches a task that runs, a job that is over, or helpers. A held job is not leased.
Source   omega.lifecycle.states; docs/decisions/0004-the-job-queue.md.
"""

from typing import Protocol


class WaitingJobStore(Protocol):
    """Changes of jobs of which tasks wait; part of the role omega_submitter.

    Each returns False, and changes nothing, if the job does not wait, or not in the way that is
    needed.
    """

    def hold(self, job: int) -> bool:
        """Park a job until `release`; a lease on it is lost. Tasks that run go on."""
        ...

    def release(self, job: int) -> bool:
        """Move a held job back to pending."""
        ...

    def requeue(self, job: int) -> bool:
        """Have a pending or parked job tried as soon as possible; not a held one."""
        ...

    def set_precedence(self, job: int, precedence: int) -> bool:
        """Change the precedence of a pending or parked job that is not elastic, and requeue it.

        A held one stays held. Raises BadInput for a precedence of more than 32 bits.
        """
        ...
