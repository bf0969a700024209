"""Tables and listings in the documents say what the code says."""

import re
import tomllib
from pathlib import Path

import typer.main

from omega.cli.main import build
from omega.config import Settings
from omega.errors import BadInput
from omega.framework.kinds import registered
from omega.lifecycle.states import ParkReason, State
from omega.sim.experiment import Architecture
from omega.terminal.program import BAD_USAGE, DONE, FAILED, INTERRUPTED
from omega.workload.machines_file import read_machines
from omega.workload.program_spec import ProgramFields
from omega.workload.spec import JobFields, ShapeFields, StepWorkSpec, parse_specs
from omega.workload.traces.detect import LOADERS
from schedulers import parsync
from schedulers.elastic import policies as elastic
from schedulers.elastic.policies import PolicyName
from schedulers.elastic.scheduler import PRECEDENCE
from schedulers.ml_gpu import settings as ml_gpu
from schedulers.ml_gpu.policies.named import POLICIES
from schedulers.settings import BatchSettings, ServiceSettings
from tests.architecture.test_layers import GROUND, ROWS
from tests.architecture.tree import ROOT, Source
from tests.docs.documents import blocks, document, documents, section, table

ARCHITECTURE = document("ARCHITECTURE.md")
GPUS = document("docs/guide/gpus.md")
INDEX = document("docs/guide/README.md")
JOBS = document("docs/guide/jobs.md")
MACHINES = document("docs/guide/machines.md")
OPERATE = document("docs/guide/operate.md")
README = document("README.md")
SCHEDULERS = document("docs/guide/schedulers.md")
SIMULATE = document("docs/guide/simulate.md")
IN_WORDS = {"OMEGA_DATABASE_URL", "OMEGA_DATA_DIR", "OMEGA_READ_FROM"}
"""Settings whose default depends on the machine, or on another setting."""
IN_PLACE_OF_A_DEFAULT = ("required", "none")
ENDINGS = ("", "_perf", "_packed", "_perf_SLOs", "_packed_SLOs")
"""Of a policy's name, for which the guide writes a star."""


def first_column(source: Source) -> list[str]:
    return [row[0].strip("`") for row in table(source)]


def defaults(source: Source) -> dict[str, str]:
    return {row[0].strip("`"): row[1].strip("`") for row in table(source)}


def test_the_layers_are_those_that_the_test_enforces() -> None:
    rows = table(section(ARCHITECTURE, "Layers"))

    assert [str(number) for number in range(1, len(ROWS) + 1)] == [row[0] for row in rows]
    assert [set(row) for row in ROWS] == [set(row[1].split(", ")) for row in rows]
    assert set(re.findall(r"\w+", section(ARCHITECTURE, "Layers").text)) >= GROUND


def test_the_index_names_each_page_of_the_guide_once() -> None:
    pages = [source.path for source in documents() if source.path.startswith("docs/guide/")]
    named = re.findall(r"^\| \[([\w.]+)\]\(\1\) \|", INDEX.text, re.MULTILINE)

    assert sorted(named) == sorted(f"{path.split('/')[-1]}" for path in set(pages) - {INDEX.path})


def test_the_settings_are_those_that_there_are() -> None:
    told = defaults(section(OPERATE, "Settings"))
    fields = {f"OMEGA_{name.upper()}": field for name, field in Settings.model_fields.items()}

    assert list(fields) == list(told)
    assert {
        name: str(field.get_default()) for name, field in fields.items() if name not in IN_WORDS
    } == {name: default for name, default in told.items() if name not in IN_WORDS}


def test_the_settings_file_that_is_shown_can_be_read() -> None:
    (shown,) = blocks(section(OPERATE, "Settings"), "toml")
    settings = Settings(**tomllib.loads(shown.text))

    assert 20_000 == settings.lease_ms
    assert settings.database_url is not None


def test_the_extras_are_those_that_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = re.findall(r"pip install '\.\[(\w+)\]'", OPERATE.text + README.text)

    assert list(extras) == first_column(section(OPERATE, "Install"))
    assert set(named) <= set(extras)


def test_the_exit_codes_are_those_that_there_are() -> None:
    told = [int(code) for code in first_column(section(OPERATE, "Exit codes"))]

    assert [DONE, FAILED, BAD_USAGE, INTERRUPTED] == told


def test_the_schedulers_are_those_that_are_registered() -> None:
    told = set(first_column(SCHEDULERS))

    assert told == {one.kind for one in registered() if one.package == "omega-scheduler"}


def test_the_options_of_a_scheduler_are_those_that_it_has() -> None:
    command: object = typer.main.get_command(build(["scheduler"]))
    run = command.commands["scheduler"].commands["run"]  # type: ignore[attr-defined]
    options = {
        one.opts[0] for one in run.params if one.opts[0].startswith("--") and not one.hidden
    } - {"--help"}

    assert options == set(first_column(section(SCHEDULERS, "Options of `omega scheduler run`")))


def typed(value: object) -> str:
    """Return a setting as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_settings_of_parsync_are_those_that_it_has() -> None:
    text = section(SCHEDULERS, "Options of `omega scheduler run`").text
    told = defaults(Source(SCHEDULERS.path, "\n" + text[text.index("| setting |") :]))
    usual = {name: getattr(parsync.Settings(), name) for name in parsync.Settings.model_fields}

    assert told == {name: typed(getattr(value, "value", value)) for name, value in usual.items()}


def test_the_settings_of_batch_and_service_are_those_that_they_have() -> None:
    told = defaults(section(SCHEDULERS, "Settings of batch and service"))

    assert told == {name: typed(value) for name, value in BatchSettings().model_dump().items()}
    assert told.keys() - {"preempts"} == ServiceSettings.model_fields.keys()


def test_the_settings_of_elastic_are_those_that_it_has() -> None:
    told = defaults(section(SCHEDULERS, "Elastic jobs and their helpers"))

    assert told.keys() == set(elastic.SETTINGS)
    assert (PolicyName.MAX.value, str(PRECEDENCE)) == (told["policy"], told["helper_precedence"])


def test_the_settings_of_rounds_are_those_that_they_have() -> None:
    fields = ml_gpu.Settings.model_fields
    usual = {
        name: "required" if field.is_required() else str(field.default or "none")
        for name, field in fields.items()
    }

    assert usual == defaults(section(GPUS, "On a cell"))


def test_the_policies_are_those_that_there_are() -> None:
    told = first_column(section(GPUS, "One allocation problem"))
    meant = [
        {f"{name[:-1]}{ending}" for ending in ENDINGS} if name.endswith("*") else {name}
        for name in told
    ]

    assert set(POLICIES) <= set().union(*meant)
    assert [] == [
        name for name, names in zip(told, meant, strict=True) if not names & set(POLICIES)
    ]


def test_the_policies_that_rounds_refuse_are_those_that_the_guide_names() -> None:
    named = re.compile(r"packed|SLOs|cost|^(allox|gandiva)$")
    (told,) = [row[2] for row in table(section(GPUS, "On a cell")) if row[0] == "`policy`"]
    refused = []
    for name in POLICIES:
        try:
            ml_gpu.rounds_config(ml_gpu.Settings(round=360, policy=name))
        except BadInput:
            refused.append(name)

    assert re.findall(r"`(\w+)`", told) == ["packed", "SLOs", "cost", "allox", "gandiva"]
    assert [name for name in POLICIES if named.search(name)] == refused


def test_the_traces_are_those_that_can_be_read() -> None:
    told = {row[0].strip("`"): row[2] for row in table(section(MACHINES, "Traces"))}

    assert set(LOADERS) == set(told)
    for name, loader in LOADERS.items():
        options = dict(re.findall(r"`(\w+)=([^;]+)", told[name]))

        assert dict(loader.options) == {
            option: tuple(re.findall(r"[\w-]+", values)) for option, values in options.items()
        }


def test_the_architectures_are_those_that_are_simulated() -> None:
    assert [one.value for one in Architecture] == first_column(section(SIMULATE, "One run"))


def test_the_fields_of_a_job_are_those_that_there_are() -> None:
    for heading, model in (
        ("Fields of a job", JobFields),
        ("Fields of a task group", ShapeFields),
        ("Programs", ProgramFields),
        ("Fields of `work`", StepWorkSpec),
    ):
        told = defaults(section(JOBS, heading))
        required = {name for name, field in model.model_fields.items() if field.is_required()}

        assert list(model.model_fields) == list(told)
        assert required == {name for name, default in told.items() if default == "required"}
        assert [] == [
            name
            for name, default in told.items()
            if default not in IN_PLACE_OF_A_DEFAULT and name != "gpus"
            if str(model.model_fields[name].default).lower() != default
        ]


def test_the_states_and_reasons_are_those_that_there_are() -> None:
    states = first_column(section(JOBS, "Submit, follow, cancel"))
    rows = table(section(JOBS, "Why a job waits"))
    passing = {reason.value for reason in ParkReason if not reason.is_permanent}

    assert [state.value for state in State] == states
    assert [reason.value for reason in ParkReason] == [row[0].strip("`") for row in rows]
    assert passing == {
        row[0].strip("`") for row in rows if "machines are" not in row[2] and "never" not in row[2]
    }


def test_every_job_that_is_shown_can_be_submitted() -> None:
    shown = [*blocks(README, "yaml"), *blocks(JOBS, "yaml")]
    specs = [spec for block in shown for spec in parse_specs(block.text, block.path)]

    assert ["hello", "train", "web", "resnet", "thumbnails", "report", "site", "index"] == [
        spec.name for spec in specs
    ]
    assert {"batch", "elastic", "ml-gpu", "service"} == {spec.scheduler for spec in specs}


def test_the_lists_of_machines_that_are_shown_can_be_loaded(tmp_path: Path) -> None:
    read = []
    for block in blocks(section(MACHINES, "A list of your own"), "csv", "yaml"):
        path = tmp_path / f"machines.{block.language}"
        path.write_text(block.text)
        read.append(read_machines(path))
    csv, yaml = read

    assert 42 == len(csv.names)
    assert csv.names == yaml.names
    assert csv.attributes == yaml.attributes
    assert (csv.capacity == yaml.capacity).all()
