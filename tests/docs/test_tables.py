"""Tables and listings in the documents say what the code says."""

import re

import numpy as np

from omega.config import Settings
from omega.framework.registry import registered
from omega.framework.scheduler import Scheduler
from omega.testing.builders import a_cell, a_job, a_view
from omega.workload.spec import parse_specs
from omega.workload.traces.detect import LOADERS
from tests.architecture.test_layers import GROUND, ROWS
from tests.architecture.tree import ROOT
from tests.docs.documents import blocks, document, section, table

README = document("README.md")
ARCHITECTURE = document("ARCHITECTURE.md")
IN_WORDS = {"OMEGA_DATABASE_URL", "OMEGA_DATA_DIR"}
"""Settings whose default depends on the machine."""


def test_the_layers_are_those_that_the_test_enforces() -> None:
    rows = table(section(ARCHITECTURE, "Layers"))

    assert [str(number) for number in range(1, len(ROWS) + 1)] == [row[0] for row in rows]
    assert [set(row) for row in ROWS] == [set(row[1].split(", ")) for row in rows]
    assert set(re.findall(r"\w+", section(ARCHITECTURE, "Layers").text)) >= GROUND


def test_the_settings_are_those_that_there_are() -> None:
    rows = table(section(README, "Settings"))
    fields = {f"OMEGA_{name.upper()}": field for name, field in Settings.model_fields.items()}
    told = {row[0].strip("`"): row[1] for row in rows}

    assert list(fields) == list(told)
    assert {
        name: str(field.get_default()) for name, field in fields.items() if name not in IN_WORDS
    } == {name: default for name, default in told.items() if name not in IN_WORDS}


def test_the_schedulers_are_those_that_are_registered() -> None:
    told = {row[0].strip("`") for row in table(section(README, "Jobs"))}

    assert told == {one.kind for one in registered() if one.package == "omega-scheduler"}


def test_the_traces_are_those_that_can_be_read() -> None:
    assert set(LOADERS) == {row[0].strip("`") for row in table(section(README, "Traces"))}


def test_every_job_that_is_shown_can_be_submitted() -> None:
    shown = [
        block for part in ("First steps", "Jobs") for block in blocks(section(README, part), "yaml")
    ]
    specs = [spec for block in shown for spec in parse_specs(block.text, "README.md")]

    assert ["hello", "train", "web", "resnet"] == [spec.name for spec in specs]
    assert {"batch", "ml-gpu", "service"} == {spec.scheduler for spec in specs}


def test_the_strangers_scheduler_is_the_one_that_is_tested() -> None:
    (listing,) = blocks(section(README, "Your own scheduler"), "python")
    code = [line for line in listing.text.splitlines() if line and not line.startswith('"""')]

    assert (ROOT / "tests/contract/stranger.py").read_text() == listing.text
    assert len(code) <= 20


def test_the_strangers_scheduler_runs_as_it_is_shown() -> None:
    (listing,) = blocks(section(README, "Your own scheduler"), "python")
    (entry,) = blocks(section(README, "Your own scheduler"), "toml")
    names: dict[str, object] = {}
    exec(compile(listing.text, "README.md", "exec"), names)
    kind, name = re.findall(r'^([\w-]+) = "your_package:(\w+)"$', entry.text, re.MULTILINE)[0]
    found = names[name]

    assert isinstance(found, type)
    assert issubclass(found, Scheduler)
    assert kind == found.kind

    job = a_job(tasks=5)
    claims = found().place(a_view(a_cell(machines=3)), job, np.random.default_rng(1))

    assert job.unplaced.tolist() == claims.task.tolist()
