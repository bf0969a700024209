"""What docker-compose.yml starts can be started: commands, settings, order and health check."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from omega import __version__
from omega.config import environment_names, load_settings
from tests.architecture.tree import ROOT
from tests.docs.commands import problem_with_omega
from tests.fixtures.servers import free_port

COMPOSE = ROOT / "docker-compose.yml"
POSTGRES = "postgres"
DEFAULT = re.compile(r"\$\{\w+:-([^}]+)\}")
Service = Mapping[str, Any]
Services = dict[str, Service]


@pytest.fixture
def services() -> Services:
    """The services as they are where no variable is set."""
    services: Services = yaml.safe_load(DEFAULT.sub(r"\1", COMPOSE.read_text()))["services"]
    return services


@pytest.fixture
def ours(services: Services) -> Services:
    """The services that run omega."""
    return {name: service for name, service in services.items() if name != POSTGRES}


def has_docker_compose() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None
        and not subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
    )


def test_docker_reads_the_file_as_we_do(services: Services) -> None:
    if not has_docker_compose():
        pytest.skip("docker compose is not installed")
    said = subprocess.run(
        ["docker", "compose", "--file", COMPOSE, "config", "--format", "json"],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    ).stdout
    read = json.loads(said)["services"]

    assert services.keys() == read.keys()
    for name, service in services.items():
        assert service.get("command") == read[name].get("command")
        assert service["environment"] == read[name]["environment"]


def test_each_command_is_one_that_omega_takes(ours: Services) -> None:
    for name, service in ours.items():
        program, *words = service["command"]
        assert "omega" == program, name
        assert problem_with_omega(words) is None, name


def test_no_two_services_are_one_replica(ours: Services) -> None:
    assert {1} == set(Counter(tuple(service["command"]) for service in ours.values()).values())


def test_the_settings_name_the_database_that_is_started(
    services: Services, ours: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = services[POSTGRES]["environment"]
    for name, service in ours.items():
        assert service["environment"].keys() <= environment_names(), name
        for variable, value in service["environment"].items():
            monkeypatch.setenv(variable, value)
        told = load_settings().database_url
        assert told is not None
        url = make_url(told.get_secret_value())

        assert (POSTGRES, 5_432) == (url.host, url.port)
        assert (server["POSTGRES_USER"], server["POSTGRES_PASSWORD"], server["POSTGRES_DB"]) == (
            url.username,
            url.password,
            url.database,
        )


def test_each_variable_has_a_default(services: Services) -> None:
    assert "$" not in json.dumps(services)


def test_what_a_service_waits_for_can_come(services: Services, ours: Services) -> None:
    for name, service in ours.items():
        for other, how in service["depends_on"].items():
            ends = services[other]["restart"] == "no"
            possible = {
                "service_healthy": "healthcheck" in services[other],
                "service_completed_successfully": ends,
            }
            assert possible[how["condition"]], f"{name} waits for {other}"


def test_all_wait_for_the_migration_but_the_migration(ours: Services) -> None:
    migrations = [name for name, one in ours.items() if one["command"][1:] == ["db", "init"]]
    (migration,) = migrations

    for name, service in ours.items():
        assert POSTGRES in service["depends_on"]
        assert (name != migration) == (migration in service["depends_on"])


def test_nothing_is_published_to_a_network(services: Services) -> None:
    ports = [str(port) for service in services.values() for port in service.get("ports", ())]

    assert all(port.startswith("127.0.0.1:") for port in ports), ports


def test_the_image_is_tagged_with_this_version(ours: Services) -> None:
    assert {f"omega-scheduler:{__version__}"} == {service["image"] for service in ours.values()}


def test_the_health_check_asks_as_the_program_understands(services: Services) -> None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_isready"))
    if not found:
        pytest.skip("no Debian postgresql package is installed")
    _, program, *arguments = services[POSTGRES]["healthcheck"]["test"]
    asked = subprocess.run([found[-1], *arguments, f"--port={free_port()}"], check=False)

    assert found[-1].name == program
    # It exits with 2 where nobody answers, and with 3 for arguments that it does not take.
    assert 2 == asked.returncode
