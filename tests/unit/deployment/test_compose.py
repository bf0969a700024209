"""Of docker-compose.yml, what `make test-containers` does not see by running it."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.architecture.tree import ROOT
from tests.docs.commands import problem_with_omega

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


def test_each_command_is_one_that_omega_takes(ours: Services) -> None:
    for name, service in ours.items():
        program, *words = service["command"]
        assert "omega" == program, name
        assert problem_with_omega(words) is None, name


def test_no_two_services_are_one_replica(ours: Services) -> None:
    assert {1} == set(Counter(tuple(service["command"]) for service in ours.values()).values())


def test_each_variable_has_a_default(services: Services) -> None:
    assert "$" not in json.dumps(services)


def test_all_wait_for_the_migration_but_the_migration(ours: Services) -> None:
    migrations = [name for name, one in ours.items() if one["command"][1:] == ["db", "init"]]
    (migration,) = migrations

    for name, service in ours.items():
        assert POSTGRES in service["depends_on"]
        assert (name != migration) == (migration in service["depends_on"])


def test_nothing_is_published_to_a_network(services: Services) -> None:
    ports = [str(port) for service in services.values() for port in service.get("ports", ())]

    assert all(port.startswith("127.0.0.1:") for port in ports), ports
