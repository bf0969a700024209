"""The compose file keeps its rules, and each rule can fail."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from tests.architecture.tree import ROOT
from tests.unit.deployment import compose
from tests.unit.deployment.compose import RULES, Rule


@pytest.fixture
def document() -> dict[str, Any]:
    """The compose file; each service a document of its own, whatever YAML lets them share."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = {name: deepcopy(service) for name, service in loaded["services"].items()}
    return {**loaded, "services": services}


@pytest.mark.parametrize("rule", RULES)
def test_the_compose_file_keeps_the_rule(rule: Rule, document: dict[str, Any]) -> None:
    assert [] == list(rule(document))


GONE = object()
BROKEN: list[tuple[Rule, str, str, object]] = [
    (compose.commands_parse, "batch-1", "command", ["omega", "scheduler", "go", "batch"]),
    (compose.commands_parse, "batch-1", "command", ["omega", "scheduler", "run"]),
    (compose.commands_parse, "nodes", "command", ["omega", "nodes", "simulate", "--speed", "2"]),
    (compose.commands_parse, "nodes", "command", "omega nodes simulate"),
    (compose.commands_parse, "nodes", "command", GONE),
    (
        compose.replicas_are_distinct,
        "batch-2",
        "command",
        ["omega", "scheduler", "run", "batch", "--replica", "1"],
    ),
    (compose.environment_is_known, "nodes", "environment", {"OMEGA_DATABASE_URI": ""}),
    (compose.environment_is_known, "nodes", "environment", {"POSTGRES_USER": "omega"}),
    (compose.environment_is_known, "postgres", "environment", {"POSTGRES_USERNAME": "omega"}),
    (compose.dependencies_are_services, "nodes", "depends_on", ["postgres"]),
    (compose.dependencies_are_services, "nodes", "depends_on", {"database": {}}),
    (compose.dependencies_are_services, "nodes", "depends_on", {"postgres": {}}),
    (
        compose.dependencies_are_services,
        "nodes",
        "depends_on",
        {"migrate": {"condition": "service_healthy"}},
    ),
    (
        compose.ours_wait_for_the_database,
        "nodes",
        "depends_on",
        {"postgres": {"condition": "service_healthy"}},
    ),
    (compose.ours_wait_for_the_database, "migrate", "depends_on", {}),
    (compose.images_are_pinned, "postgres", "image", "postgres"),
    (compose.images_are_pinned, "postgres", "image", "postgres:latest"),
    (compose.images_are_pinned, "nodes", "image", "omega-scheduler:0.0.1"),
    (compose.images_are_pinned, "nodes", "image", GONE),
    (compose.ports_stay_on_this_machine, "postgres", "ports", ["5432:5432"]),
    (compose.ports_stay_on_this_machine, "nodes", "ports", ["0.0.0.0:80:80"]),
    (compose.postgres_is_checked, "postgres", "image", "postgres:17"),
    (compose.postgres_is_checked, "postgres", "healthcheck", GONE),
    (compose.postgres_is_checked, "postgres", "volumes", ["postgres:/data"]),
    (
        compose.passwords_come_from_outside,
        "postgres",
        "environment",
        {"POSTGRES_PASSWORD": "hunter2"},
    ),
    (
        compose.passwords_come_from_outside,
        "nodes",
        "environment",
        {"OMEGA_DATABASE_URL": "postgresql://omega:hunter2@postgres/omega"},
    ),
    (
        compose.passwords_come_from_outside,
        "postgres",
        "environment",
        {"POSTGRES_PASSWORD": "${POSTGRES_PASSWORD:-hunter2}"},
    ),
    (
        compose.variables_have_defaults,
        "postgres",
        "environment",
        {"POSTGRES_PASSWORD": "${POSTGRES_PASSWORD}"},
    ),
    (
        compose.variables_have_defaults,
        "nodes",
        "environment",
        {"OMEGA_LEASE_MS": "${OMEGA_LEASE:-5000}"},
    ),
    (compose.processes_end_cleanly, "nodes", "init", GONE),
    (compose.processes_end_cleanly, "nodes", "stop_grace_period", GONE),
    (compose.processes_end_cleanly, "nodes", "restart", "no"),
    (compose.processes_end_cleanly, "migrate", "restart", "unless-stopped"),
    (compose.all_processes_are_there, "ml-gpu", "command", ["omega", "scheduler", "run", "batch"]),
]


@pytest.mark.parametrize(("rule", "service", "key", "value"), BROKEN)
def test_a_rule_finds_what_breaks_it(
    rule: Rule, service: str, key: str, value: object, document: dict[str, Any]
) -> None:
    if value is GONE:
        del document["services"][service][key]
    else:
        document["services"][service][key] = value

    assert list(rule(document))


def test_every_rule_has_been_seen_to_fail() -> None:
    assert set(RULES) == {rule for rule, _, _, _ in BROKEN}
