"""The files of deploy/monitoring name only what is exported, and Prometheus takes them."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from omega.reports.exposition import COUNTERS, METRICS
from tests.architecture.tree import ROOT
from tests.docs.commands import problem_with_omega
from tests.fixtures.exported import a_busy_store, exported
from tests.fixtures.prometheus import MISSING, checked, is_here

FOLDER = ROOT / "deploy" / "monitoring"
RULES = FOLDER / "omega.rules.yml"
TESTS = FOLDER / "omega.rules.test.yml"
CONFIGURATION = FOLDER / "prometheus.yml"
DASHBOARD = FOLDER / "omega.dashboard.json"

GUIDE = (ROOT / "docs" / "guide" / "web.md").read_text()

OF_PROMETHEUS = {"up": {"job", "instance"}}
ADDED = {"job", "instance"}
"""Labels that Prometheus adds to what it scrapes."""
SELECTOR = re.compile(r"\b(up|omega[\w:]*)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPING = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
LEGEND = re.compile(r"\{\{\s*([\w.$]+)")
VARIABLES = {"$__rate_interval": "5m", "$instance": "c", "$scheduler": ".*"}
COMMAND = re.compile(r"`(omega [^`{]+)`")

needs_prometheus = pytest.mark.skipif(not is_here(), reason=MISSING)


def rules() -> list[Mapping[str, Any]]:
    read = yaml.safe_load(RULES.read_text())
    return [rule for group in read["groups"] for rule in group["rules"]]


def alerts() -> list[Mapping[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def targets() -> list[Mapping[str, Any]]:
    """Return each query of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target for panel in panels for target in panel.get("targets", ())]


def queried(expression: str) -> str:
    """Return what a dashboard asks for once its variables are set."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def expressions() -> list[str]:
    in_rules = [rule["expr"] for rule in rules()]
    return in_rules + [queried(target["expr"]) for target in targets()]


@pytest.fixture(scope="module")
def told() -> dict[str, set[str]]:
    """The labels of each series that is exported, recorded or Prometheus' own, by name."""
    text = generate_latest(exported(a_busy_store())).decode()
    known: dict[str, set[str]] = dict(OF_PROMETHEUS)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            known.setdefault(sample.name, set(ADDED)).update(sample.labels)
    recorded = [rule for rule in rules() if "record" in rule]
    return known | {
        rule["record"]: set().union(*(known[name] for name, _ in selectors(rule["expr"])))
        for rule in recorded
    }


def selectors(expression: str) -> list[tuple[str, list[str]]]:
    """Return each series that an expression names, with the labels that it is chosen by."""
    return [(name, MATCHER.findall(matched)) for name, matched in SELECTOR.findall(expression)]


def grouped_by(expression: str) -> set[str]:
    return {it.strip() for group in GROUPING.findall(expression) for it in group.split(",")}


def labels_of(expression: str, told: Mapping[str, set[str]]) -> set[str]:
    """Return the labels of an expression's series: those it groups by, or all of its series."""
    every = set().union(*(told[name] for name, _ in selectors(expression)))
    return grouped_by(expression) or every


@pytest.mark.parametrize("expression", expressions())
def test_what_is_named_is_exported(expression: str, told: dict[str, set[str]]) -> None:
    named = selectors(expression)

    assert named, "it names no series"
    for name, chosen_by in named:
        assert name in told, f"{name} is not exported"
        assert set(chosen_by) <= told[name], f"{name} has no such label"
    assert grouped_by(expression) <= set().union(*(told[name] for name, _ in named))


def test_a_legend_names_labels_that_the_query_leaves(told: dict[str, set[str]]) -> None:
    for target in targets():
        left = labels_of(queried(target["expr"]), told)
        assert set(LEGEND.findall(target["legendFormat"])) <= left, target


def test_the_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    squares = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(set(squares)) == len(squares)
    assert len(panels) == len({panel["id"] for panel in panels})


def test_the_filters_of_the_dashboard_have_values(told: dict[str, set[str]]) -> None:
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    queries = [it["query"]["query"] for it in variables if it["type"] == "query"]

    for query in queries:
        (name, _), *_ = selectors(query)
        (label,) = re.findall(r", (\w+)\)$", query)
        assert label in told[name]


@pytest.mark.parametrize("alert", alerts(), ids=lambda it: str(it["alert"]))
def test_an_alert_says_how_bad_it_is_and_what_to_do(
    alert: Mapping[str, Any], told: dict[str, set[str]]
) -> None:
    texts = alert["annotations"]

    assert {"summary", "description"} == set(texts)
    used = set(re.findall(r"\$labels\.(\w+)", json.dumps(texts)))
    assert used <= labels_of(alert["expr"], told)
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    for command in COMMAND.findall(texts["description"]):
        _, *words = shlex.split(command.replace("JOB", "7"))
        if words not in (["health"], ["scheduler", "forget"]):
            assert problem_with_omega(words) is None, command


def test_each_alert_is_seen_to_fire_and_to_wait() -> None:
    tested = yaml.safe_load(TESTS.read_text())["tests"]
    cases = [case for one in tested for case in one.get("alert_rule_test", ())]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    waits = {case["alertname"] for case in cases if not case["exp_alerts"]}

    assert {alert["alert"] for alert in alerts()} == fires == waits


def test_the_guide_has_each_metric_of_the_cell_and_each_alert(told: dict[str, set[str]]) -> None:
    named = set(re.findall(r"\b(omega_\w+)\b", GUIDE))

    assert set() == named - set(told) - {"omega_reader"}
    ours = {f"{name}_total" if name in COUNTERS else name for name in METRICS}
    assert set() == ours - named
    assert {alert["alert"] for alert in alerts()} == set(re.findall(r"`(Omega\w+)`", GUIDE))


@needs_prometheus
@pytest.mark.parametrize(
    "words",
    [
        ("check", "rules", "--lint-fatal", str(RULES)),
        ("check", "config", "--lint-fatal", str(CONFIGURATION)),
        ("test", "rules", str(TESTS)),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_promtool_finds_nothing_wrong(words: tuple[str, ...]) -> None:
    assert "" == checked(*words)


@needs_prometheus
def test_promtool_finds_nothing_wrong_with_the_metrics() -> None:
    assert "" == checked("check", "metrics", said=generate_latest(exported(a_busy_store())))


@needs_prometheus
def test_prometheus_can_answer_each_query_of_the_dashboard(tmp_path: Path) -> None:
    asked = [{"record": f"q:{at}", "expr": queried(it["expr"])} for at, it in enumerate(targets())]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": asked}]}))

    assert "" == checked("check", "rules", str(file))
