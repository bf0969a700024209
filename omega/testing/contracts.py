"""The contract for stores: subclass `StoreContract` and provide the fixture `store`.

Goal     Hold every store, Omega's and others', to the same behaviour.
Promise  No test needs a clock that it can move: a lease of 0 ms has expired at once. After each
         test the store's own `verify` must find nothing.
Source   River's Exercise and Oban's engine tests: one suite, every engine.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self) -> Store:  # an empty one
            return MyStore(...)
"""

from omega.testing.agent_contract import AgentContract, RegistrationContract
from omega.testing.alternate_contract import AlternateContract
from omega.testing.cell_contract import CellContract
from omega.testing.change_contract import ChangeContract
from omega.testing.commit_contract import CommitContract, ConflictRuleContract
from omega.testing.elastic_contract import AddedHelperContract, PhaseContract
from omega.testing.eviction_contract import EvictedContract, EvictionContract
from omega.testing.exit_contract import ExitContract, FailedGangContract
from omega.testing.gang_contract import GangContract
from omega.testing.helper_contract import HelpersEndContract, LostHelperContract
from omega.testing.holding_contract import HoldingContract, IdleContract
from omega.testing.inquiry_contract import AttemptContract, LineContract, WaitingJobContract
from omega.testing.lane_contract import LaneContract, OrderContract, ReclaimContract, TenantContract
from omega.testing.lease_contract import LeaseContract
from omega.testing.machine_contract import (
    LostTaskContract,
    MachineStateContract,
    ResizeContract,
)
from omega.testing.machine_lease_contract import (
    ExpiredMachineContract,
    FreedMachineContract,
    HoldingMachineContract,
    LeftMachineContract,
)
from omega.testing.moving_contract import MovingContract
from omega.testing.occupant_contract import OccupantContract
from omega.testing.pipeline_contract import KeyContract, PipelineContract, StageEndContract
from omega.testing.planned_contract import PlannedContract
from omega.testing.progress_contract import ProgressContract
from omega.testing.queue_contract import QueueContract
from omega.testing.quota_contract import QuotaContract, QuotaReturnContract
from omega.testing.refusal_contract import IdentityContract, RefusalContract
from omega.testing.registry_contract import RegistryContract
from omega.testing.round_contract import RecallContract, RoundContract
from omega.testing.story_contract import JobStoryContract, MachineStoryContract
from omega.testing.turn_contract import TurnContract
from omega.testing.usage_contract import UsageContract
from omega.testing.waiting_contract import WaitingContract
from omega.testing.watching_contract import WatchingContract


class StoreContract(
    CellContract,
    CommitContract,
    ConflictRuleContract,
    IdentityContract,
    RefusalContract,
    GangContract,
    EvictionContract,
    EvictedContract,
    OccupantContract,
    MovingContract,
    AlternateContract,
    ChangeContract,
    MachineStateContract,
    LostTaskContract,
    ResizeContract,
    QuotaContract,
    QuotaReturnContract,
    QueueContract,
    PipelineContract,
    StageEndContract,
    KeyContract,
    LeaseContract,
    RoundContract,
    RecallContract,
    RegistryContract,
    ProgressContract,
    AddedHelperContract,
    LostHelperContract,
    HelpersEndContract,
    PhaseContract,
    ExitContract,
    FailedGangContract,
    AgentContract,
    RegistrationContract,
    HoldingMachineContract,
    ExpiredMachineContract,
    LeftMachineContract,
    FreedMachineContract,
    TurnContract,
    LaneContract,
    TenantContract,
    OrderContract,
    ReclaimContract,
    WaitingContract,
    HoldingContract,
    UsageContract,
    IdleContract,
    WaitingJobContract,
    LineContract,
    AttemptContract,
    JobStoryContract,
    MachineStoryContract,
    PlannedContract,
    WatchingContract,
):
    """Everything that a store must do."""
