"""The scheduler contract, for the schedulers that come with omega and for a stranger's."""

import pytest

from omega.framework.scheduler import Scheduler
from omega.testing.rounds_contract import RoundsContract
from omega.testing.scheduler_contract import SchedulerContract
from schedulers.batch import BatchScheduler
from schedulers.elastic import ElasticScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.parsync import ParSyncScheduler
from schedulers.service import ServiceScheduler
from tests.contract.stranger import RoomiestScheduler


class TestBatch(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return BatchScheduler()


class TestService(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return ServiceScheduler()


class TestBatchWithAlternates(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return BatchScheduler.configured({"alternates": "2"})


class TestServiceWithAlternates(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return ServiceScheduler.configured({"alternates": "2"})


class TestMlGpu(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return MlGpuScheduler()


class TestMlGpuWithRounds(RoundsContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return MlGpuScheduler.configured({"round": "60"})


class TestParSync(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return ParSyncScheduler()


class TestElastic(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return ElasticScheduler()


class TestStranger(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return RoomiestScheduler()
