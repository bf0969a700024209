"""What a compose file has to keep to, one function each: from the document to its complaints."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from omega import __version__
from omega.config import environment_names
from tests.docs.commands import problem_with_omega

Document = Mapping[str, Any]
Rule = Callable[[Document], Iterator[str]]

POSTGRES = "postgres"
OF_POSTGRES = frozenset({"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"})
"""Names that the image of Postgres knows, those that we use."""
OURS = "omega-scheduler"
INTERPOLATED = re.compile(r"\$\{(\w+)(:-[^}]+)?\}")
CONDITIONS = frozenset({"service_started", "service_healthy", "service_completed_successfully"})


def commands_parse(document: Document) -> Iterator[str]:
    """Each of our services runs a command that the real command line takes."""
    for name, service in _ours(document):
        command = service.get("command")
        if not isinstance(command, list) or command[:1] != ["omega"]:
            yield f"{name}: the command is no list that begins with omega: {command}"
        elif problem := problem_with_omega(command[1:]):
            yield f"{name}: {problem}"


def replicas_are_distinct(document: Document) -> Iterator[str]:
    """No two services run the same command: replicas of a kind need names of their own."""
    commands = Counter(tuple(service.get("command", ())) for _, service in _ours(document))
    for command, services in commands.items():
        if services > 1:
            yield f"{services} services run {' '.join(command)}"


def environment_is_known(document: Document) -> Iterator[str]:
    """Each name in an environment is one that somebody reads."""
    for name, service in document["services"].items():
        known = OF_POSTGRES if name == POSTGRES else environment_names()
        for variable in sorted(set(_environment(service)) - known):
            yield f"{name}: nobody reads {variable}"


def dependencies_are_services(document: Document) -> Iterator[str]:
    """Each dependency is on a service, with a condition that can come true."""
    services = document["services"]
    for name, service in services.items():
        depends_on = service.get("depends_on", {})
        if not isinstance(depends_on, dict):
            yield f"{name}: depends_on has no conditions"
            continue
        for other, how in depends_on.items():
            condition = how.get("condition")
            if other not in services:
                yield f"{name}: depends on {other}, which is no service"
            elif condition not in CONDITIONS:
                yield f"{name}: {condition} is no condition"
            elif condition == "service_healthy" and "healthcheck" not in services[other]:
                yield f"{name}: waits for {other} to be healthy, which nothing checks"


def ours_wait_for_the_database(document: Document) -> Iterator[str]:
    """Each of our services waits for a healthy Postgres; all but the migration wait for that."""
    for name, service in _ours(document):
        on = service.get("depends_on", {})
        if on.get(POSTGRES, {}).get("condition") != "service_healthy":
            yield f"{name}: does not wait for a healthy {POSTGRES}"
        migrates = service.get("command") == ["omega", "db", "init"]
        after = on.get("migrate", {}).get("condition")
        if not migrates and after != "service_completed_successfully":
            yield f"{name}: does not wait for the migration"


def images_are_pinned(document: Document) -> Iterator[str]:
    """Each image has a tag that says what it is; ours is this version."""
    for name, service in document["services"].items():
        image, _, tag = str(service.get("image", "")).partition(":")
        if not tag or tag == "latest":
            yield f"{name}: the image {image or 'that it lacks'} has no tag"
        elif image == OURS and tag != __version__:
            yield f"{name}: the image is of {tag}, the code of {__version__}"


def ports_stay_on_this_machine(document: Document) -> Iterator[str]:
    """Nothing is published to a network."""
    for name, service in document["services"].items():
        for port in service.get("ports", ()):
            if not str(port).startswith("127.0.0.1:"):
                yield f"{name}: the port {port} is open to the network"


def postgres_is_checked(document: Document) -> Iterator[str]:
    """The server is 18, keeps its data in a volume and is asked whether it answers."""
    server = document["services"].get(POSTGRES, {})
    if not str(server.get("image", "")).startswith("postgres:18"):
        yield f"{POSTGRES}: is not Postgres 18"
    if "pg_isready" not in server.get("healthcheck", {}).get("test", ()):
        yield f"{POSTGRES}: has no health check with pg_isready"
    volumes = [str(volume).split(":") for volume in server.get("volumes", ())]
    if [POSTGRES, "/var/lib/postgresql"] not in volumes or POSTGRES not in document["volumes"]:
        yield f"{POSTGRES}: its data is in no named volume"


def passwords_come_from_outside(document: Document) -> Iterator[str]:
    """A password is a variable; a default says what it is good for."""
    for name, service in document["services"].items():
        for variable, value in _environment(service).items():
            secret = "PASSWORD" in variable or "://" in str(value)
            found = INTERPOLATED.search(str(value))
            if secret and (found is None or found[1] != "POSTGRES_PASSWORD"):
                yield f"{name}: the password in {variable} is written down"
            elif secret and found is not None and "development" not in (found[2] or "development"):
                yield f"{name}: the default of {variable} looks like a real password"


def variables_have_defaults(document: Document) -> Iterator[str]:
    """It runs without any preparation, and no variable of ours is one that omega refuses."""
    for variable, default in sorted(set(INTERPOLATED.findall(str(document["services"])))):
        if not default:
            yield f"{variable} has no default"
        if variable.startswith("OMEGA_") and variable not in environment_names():
            yield f"{variable} in the user's environment would be refused by omega itself"


def processes_end_cleanly(document: Document) -> Iterator[str]:
    """Each service has an init, time to end in, and a policy for when it ends by itself."""
    for name, service in document["services"].items():
        if service.get("init") is not True:
            yield f"{name}: has no init, so signals and orphans are lost"
        if "stop_grace_period" not in service:
            yield f"{name}: has no time to end in"
        once = service.get("command") == ["omega", "db", "init"]
        if service.get("restart") != ("no" if once else "unless-stopped"):
            yield f"{name}: restarts {service.get('restart')}"


def all_processes_are_there(document: Document) -> Iterator[str]:
    """A cell has a migration, two batch schedulers, one of each other kind, and nodes."""
    said = Counter(_verb(service) for _, service in _ours(document))
    cast = {
        "db init": 1,
        "scheduler run batch": 2,
        "scheduler run service": 1,
        "scheduler run ml-gpu": 1,
        "nodes simulate": 1,
    }
    for verb, services in cast.items():
        if said[verb] != services:
            yield f"{said[verb]} services run omega {verb}, not {services}"


def _verb(service: Document) -> str:
    words: list[str] = []
    for word in service.get("command", ())[1:]:
        if word.startswith("-"):
            break
        words.append(word)
    return " ".join(words)


def _ours(document: Document) -> list[tuple[str, Document]]:
    return [(name, one) for name, one in document["services"].items() if name != POSTGRES]


def _environment(service: Document) -> Mapping[str, Any]:
    environment = service.get("environment", {})
    assert isinstance(environment, dict), "an environment is a mapping here"
    return environment


RULES: tuple[Rule, ...] = (
    commands_parse,
    replicas_are_distinct,
    environment_is_known,
    dependencies_are_services,
    ours_wait_for_the_database,
    images_are_pinned,
    ports_stay_on_this_machine,
    postgres_is_checked,
    passwords_come_from_outside,
    variables_have_defaults,
    processes_end_cleanly,
    all_processes_are_there,
)
