"""Why a user's change of a job that waits was refused.

Goal     One sentence for each state that hold, release and requeue do not change.
Promise  The sentence is on the job as it is now.
Source   omega.store.waiting.
"""

from omega.lifecycle.states import FINAL, ParkReason, State
from omega.store.protocols import SubmitterStore
from omega.store.status import JobStatus


def why_not(store: SubmitterStore, job: JobStatus) -> str:
    """Return the reason why a job cannot be changed, by its state now."""
    now = store.job(job.id) or job
    if now.state in FINAL:
        return f"job {now.id} is over already: {now.state.value}"
    if now.parent is not None:
        return f"job {now.id} helps job {now.parent}, and never waits"
    if now.park_reason is ParkReason.HELD:
        return f"job {now.id} is held: omega release {now.id}"
    if now.state is State.PLANNING:
        return f"job {now.id} is being planned: hold it, change it, and release it"
    if now.state is State.RUNNING:
        return f"job {now.id} runs: none of its tasks waits"
    return f"job {now.id} is elastic, and keeps its precedence"
