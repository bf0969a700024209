"""The benchmark of programs at toy size: every task is run, and what is absent has its reason."""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec

import psutil
import pytest

from benchmarks.execution import SYSTEMS
from benchmarks.execution.measuring import Measured, Work
from benchmarks.execution.systems import (
    ProcessorTime,
    part_of,
    processor_s,
    processor_times,
)
from tests.benchmarks.conftest import PNG, Bench

find_spec = importlib.util.find_spec


def test_every_system_has_its_row_and_one_that_is_absent_the_reason(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_ray(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "ray" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_ray)

    ran = bench("execution", "--systems", "slurm-tuned,dask,ray,xargs")

    rows = {row["system"]: row for row in ran.rows}
    assert ["slurm-tuned", "dask", "ray", "xargs"] == list(rows)
    assert rows["ray"]["absent"] == "not installed: no package ray (requirements-ray.txt)"
    assert rows["slurm-tuned"]["absent"] == SYSTEMS["slurm-tuned"].absence()
    done = ran.document["digest"]
    for name, row in rows.items():
        if row["absent"] is not None:
            assert f"tasks, {name}" not in done
            assert row["label"] in ran.said
            continue
        typed = row["typed_count"]
        assert done[f"tasks, {name}"] == row["short_tasks"] + row["long_tasks"] + 1 + typed
        assert row["short_per_s"] > 0 < row["first_p50_ms"]
        assert row["long_overhead_ms"] > 0
        assert row["processor_ms"] == pytest.approx(sum(row["processor_ms_of"].values()), abs=0.01)
    assert {"programs"} < set(rows["dask"]["processor_ms_of"])
    assert {} == rows["xargs"]["processor_ms_of"]
    assert rows["dask"]["memory_mib"] > 0 == rows["xargs"]["memory_mib"]
    assert ran.picture.startswith(PNG)


def test_slurm_without_its_programs_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)

    assert str(SYSTEMS["slurm"].absence()).startswith("not installed: no munged, slurmctld")


def test_slurm_is_absent_for_users_who_are_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)

    assert "slurmd must be started by root" == SYSTEMS["slurm"].absence()


def test_overheads_are_times_of_a_slot_beyond_what_the_task_itself_takes() -> None:
    work = Work(slots=2, short_tasks=100, long_tasks=4, long_s=1.0, lone=1)

    told = Measured(work, short_s=5.0, long_s=2.2)

    assert (20.0, 0.1) == (told.short_per_s, told.short_overhead_s)
    assert told.long_overhead_s == pytest.approx(0.1)
    assert Measured(work, short_s=5.0).long_overhead_s is None


def test_processor_time_is_by_part_and_of_ended_children_too() -> None:
    before = processor_times([psutil.Process()])

    busy = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)

    spent = processor_s(before, processor_times([psutil.Process()]))
    assert spent["programs"] >= 0.15  # a clock tick is 10 ms
    assert "node run" == part_of("python", ["python", "-m", "omega.cli", "node", "run", "--x"])
    assert "raylet" == part_of("raylet", ["/opt/raylet", "--node"])


def test_processor_time_is_of_processes_that_are_there_before_and_after() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        stays, ends, begins = map(psutil.Process, (os.getpid(), child.pid, os.getppid()))
    before = {stays: ProcessorTime("a", 1.0, 5.0), ends: ProcessorTime("a", 9.0, 9.0)}

    spent = processor_s(
        before, {stays: ProcessorTime("b", 4.0, 7.0), begins: ProcessorTime("c", 9.0, 9.0)}
    )

    assert {"b": 3.0, "programs": 2.0} == spent
