"""For how long a fair order leaves room to a lane of another kind."""

from omega.clock import ManualClock
from omega.framework.effects import drive
from omega.framework.fair_queue import LEFT_TO_OTHERS_S, FairQueue
from omega.model.lanes import Lane, QueueOrder
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell
from tests.unit.framework.loops import a_driver

NEARLY_S = 0.75 * LEFT_TO_OTHERS_S


class TestRoomThatIsLeft:
    """The job of tenant rich waits for service; that of poor, which holds memory, for elastic."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.driver = a_driver(self.store, self.clock)
        self.queue = FairQueue("service", QueueOrder.DRF, self.clock, gap_ms=1)
        add_a_cell(self.store, 4)
        self.begin("rich", machine=1, cpu_milli=4_000)
        self.begin("poor", machine=2, memory_mib=8_000)
        for kind, tenant in (("service", "rich"), ("elastic", "poor")):
            self.store.agree_on_order(kind, "0", QueueOrder.DRF, lease_ms=LONG_MS)
            self.store.submit([a_spec(tenant=tenant, scheduler=kind, cpu_milli=1_000)])

    def begin(self, tenant: str, *, machine: int, cpu_milli: int = 0, memory_mib: int = 0) -> None:
        spec = a_spec(tenant=tenant, cpu_milli=cpu_milli, memory_mib=memory_mib)
        a_running_job(self.store, spec, [machine], cpu_milli=cpu_milli, memory_mib=memory_mib)

    def lanes_after(self, seconds: float) -> dict[Lane, int]:
        self.clock.advance(seconds)
        return drive(self.queue.lanes(1), self.driver.answer)

    def test_it_is_left_to_a_tenant_with_a_smaller_share_for_a_second(self) -> None:
        assert {} == self.lanes_after(0.0)
        assert {} == self.lanes_after(NEARLY_S)
        assert ["rich"] == [lane.tenant for lane in self.lanes_after(NEARLY_S)]

    def test_it_is_left_for_longer_if_the_tenant_gets_more_of_any_resource(self) -> None:
        first = self.lanes_after(0.0)
        self.begin("poor", machine=3, cpu_milli=1_000)

        assert [{}, {}, {}] == [first, self.lanes_after(NEARLY_S), self.lanes_after(NEARLY_S)]
