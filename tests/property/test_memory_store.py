"""Random histories on a memory store."""

import pytest

from omega.clock import ManualClock
from omega.model.claims import ConflictRule
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.auditor import Auditor
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.histories import histories


class TickingClock(ManualClock):
    """A clock that moves by a millisecond whenever it is read, so that starts differ."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


def a_store_under_audit() -> Store:
    """Return one, so that the auditor is tried on sound histories as well."""
    return Auditor(MemoryStore(TickingClock()))


@pytest.mark.parametrize("rule", ConflictRule)
def test_random_histories(dose: Dose, tally: Tallier, rule: ConflictRule) -> None:
    with tally(f"{rule.value}, in memory", of="state-machine steps") as row:
        steps, each = dose(short=120, long=20_000), dose(short=8, long=50)
        histories(a_store_under_audit, rule, row, steps=steps, each=each)
