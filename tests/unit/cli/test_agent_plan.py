"""What the options of an agent make of its folder."""

from pathlib import Path
from uuid import UUID

from omega.cli.node.run import AgentPlan, OnSilence
from omega.nodes.agent.machine_lease import Deadline, holder_of


def test_who_keeps_tasks_is_watched_by_no_watchdog_of_an_earlier_agent(tmp_path: Path) -> None:
    holder_of(tmp_path, UUID(int=1))
    Deadline(tmp_path).write(1.0)

    assert AgentPlan(on_silence=OnSilence.KEEP).machine_lease(tmp_path) is None
    assert Deadline(tmp_path).read() is None
