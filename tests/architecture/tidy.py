"""House rules that no linter knows, one function each: from a file to its complaints."""

import ast
import re
from collections.abc import Callable, Iterator

from tests.architecture.tree import Source

Rule = Callable[[Source], Iterator[str]]

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
BANNED_NAMES = frozenset({"util", "utils", "common", "helper", "helpers", "misc"})
HEADINGS = ("Goal", "Promise", "Source")

CLOCK = "omega/clock.py"
SQL_HOMES = ("omega/store/postgres/", "benchmarks/postgres/", "migrations/", "tests/")
# Upper case, at the start of a literal, and followed by what makes it a statement: prose with the
# same word in it passes.
SQL = re.compile(
    r"\s*(SELECT\s|INSERT INTO\s|UPDATE\s+\S+\s+SET\s|DELETE FROM\s|TRUNCATE\s|LISTEN\s"
    r"|NOTIFY\s|WITH\s.*\sAS\s|(CREATE|ALTER|DROP)\s+(OR REPLACE\s+)?(UNIQUE\s+)?"
    r"(TABLE|INDEX|FUNCTION|SCHEMA|DATABASE|ROLE|TYPE|VIEW|TRIGGER|SYSTEM)\b)",
    re.DOTALL,
)

GENERATORS_MADE_IN: dict[str, str] = {
    "omega/terminal/rng.py": "one for each command, from the seed that its user gave",
    "omega/framework/rng.py": "one for each try, seeded from run, job, try and replica",
    "omega/framework/process.py": "one for a replica's waits, seeded from run, kind and replica",
}
"""Files of the product that may make a random generator, each with its reason."""

OTHER_RNGS: dict[str, str] = {
    "omega/workload/recipe.py": "gives published lists again, which were drawn from random.Random",
}
"""Files that may import another source of chance than numpy, each with its reason."""

TERMINAL = "omega/terminal/terminal.py"
PRINTING: dict[str, str] = {
    TERMINAL: "makes all that is printed printable",
    "omega/terminal/program_output.py": "passes on what tasks wrote; printable for a terminal",
    "omega/cli/__main__.py": "says one word of ours before anything else is loaded",
    "benchmarks/client.py": "answers in JSON, through a pipe to the process that started it",
    "benchmarks/simulate_once.py": "answers likewise",
    "benchmarks/postgres/one_committer.py": "says through such a pipe that it listens",
}
"""Files of the product and of the benchmarks that print by other means, each with its reason."""

PRINTERS = re.compile(
    r"rich(\.(console\.Console|print|print_json|get_console|inspect|reconfigure"
    r"|(prompt|traceback|logging|markup|ansi)\b.*))?"
    r"|typer\.(echo\w*|secho|progressbar|prompt|confirm|launch|pause|clear)"
    r"|click(\..*)?|sys\.(__)?std(out|err)(__)?"
)
"""Names to import, or to call by their full name, of what prints without making it printable."""
SHOWN_ON = frozenset({"rich.live.Live", "rich.progress.Progress", "rich.status.Status"})
"""What prints to a console of rich's own, unless it is given one."""

FORBIDDEN = re.compile(
    r"(?P<registry>pypi\.org|python[h]osted|registry\.npmjs|deb\.debian\.org)"
    r"|(?<![\w.)\]}~-])/(?:work|root|home/\w+|tmp/[a-z]+)/"
)
"""Package indexes, and folders of the machine that something was written on."""


def has_a_docstring(source: Source) -> Iterator[str]:
    """Each module says what it is for."""
    if not ast.get_docstring(source.tree):
        yield f"{source.path} has no docstring. Say in a sentence what the module is for"


def says_goal_promise_and_source(source: Source) -> Iterator[str]:
    """Each module of the product says why it is there, what it holds to, and where it is from."""
    if source.parts[0] not in {"omega", "schedulers"} or _is_bare_package(source):
        return
    docstring = ast.get_docstring(source.tree) or ""
    missing = [
        word for word in HEADINGS if not re.search(rf"^{word}\s+\S", docstring, re.MULTILINE)
    ]
    if missing:
        yield (
            f"{source.path} does not say its {', '.join(missing)}. Give its docstring a line each:"
            " the goal, what callers may rely on, and the paper, model or decision it comes from"
        )


def is_not_too_long(source: Source) -> Iterator[str]:
    """A file is read in one sitting."""
    if len(source.lines) > FILE_LINES_MAX:
        yield (
            f"{source.path} has {len(source.lines)} lines, over {FILE_LINES_MAX}."
            " Split it where it holds two concepts"
        )


def has_short_functions(source: Source) -> Iterator[str]:
    """A function is seen at a glance."""
    for node in source.nodes_of(ast.FunctionDef, ast.AsyncFunctionDef):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield (
                    f"{source.path}:{node.lineno} {node.name} has {length} lines, over"
                    f" {FUNCTION_LINES_MAX}. Give its steps names of their own"
                )


def is_named_for_what_it_holds(source: Source) -> Iterator[str]:
    """No drawer for odds and ends."""
    for part in source.parts:
        if part.strip("_") in BANNED_NAMES:
            yield f"{source.path}: {part!r} says nothing. Name it for the one thing it holds"


def leaves_the_time_to_the_clock(source: Source) -> Iterator[str]:
    """Time comes in through the door."""
    if source.path == CLOCK:
        return
    for line, name in source.imports:
        if name.split(".")[0] == "time":
            yield (
                f"{source.path}:{line} imports {name}. Take a Clock from omega.clock as an"
                " argument; in a test, use a ManualClock or wait for an event"
            )
    for node in source.nodes_of(ast.Attribute):
        match node:
            case ast.Attribute(attr="now" | "utcnow" | "today", value=owner) if ast.unparse(
                owner
            ).split(".")[-1] in {"datetime", "date"}:
                yield (
                    f"{source.path}:{node.lineno} reads the calendar. Take a Clock from"
                    " omega.clock as an argument and ask for `wall`"
                )


def keeps_sql_at_home(source: Source) -> Iterator[str]:
    """One place talks to the database."""
    if source.path.startswith(SQL_HOMES):
        return
    for node in source.nodes_of(ast.Constant):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
            yield (
                f"{source.path}:{node.lineno} holds SQL. Put the statement into"
                " omega/store/postgres/ and call it by a name"
            )


def prints_through_the_terminal(source: Source) -> Iterator[str]:
    """What reaches a terminal has been made printable."""
    if source.parts[0] not in {"omega", "schedulers", "benchmarks"} or source.path in PRINTING:
        return
    advice = f"Print to an Output or a PrintableConsole: {TERMINAL} says why"
    shown = {name.rpartition(".")[2] for _, name in source.imports if name in SHOWN_ON}
    for line, name in source.imports:
        if PRINTERS.fullmatch(name) or name == "rich.console":
            yield f"{source.path}:{line} imports {name}. {advice}"
    for node in source.nodes_of(ast.Call, ast.Attribute, ast.keyword):
        match node:
            case ast.Call(func=ast.Name("print" | "input")):
                yield f"{source.path}:{node.lineno} calls {ast.unparse(node.func)}. {advice}"
            case ast.Attribute() if PRINTERS.fullmatch(_dotted(node)):
                yield f"{source.path}:{node.lineno} uses {ast.unparse(node)}. {advice}"
            case ast.Call(func=ast.Name(what), keywords=given) if what in shown:
                if "console" not in {one.arg for one in given}:
                    yield f"{source.path}:{node.lineno} gives {what} no console. {advice}"
            case (
                ast.Attribute(attr="from_markup")
                | ast.keyword(arg="markup", value=ast.Constant(True))
            ):
                yield (
                    f"{source.path}:{node.lineno} has a text read as markup, whoever wrote it."
                    " Give a Text its style"
                )


def takes_its_rng_from_outside(source: Source) -> Iterator[str]:
    """A run is a function of its seed."""
    for line, name in source.imports if source.path not in OTHER_RNGS else ():
        if name.split(".")[0] == "random" or name.startswith("numpy.random"):
            yield (
                f"{source.path}:{line} imports {name}. Take a Generator as an argument, and call"
                " its type np.random.Generator"
            )
    product = source.parts[0] in {"omega", "schedulers"} and source.parts[1] != "testing"
    for node in source.nodes_of(ast.Attribute, ast.Call):
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name("np" | "numpy"), attr="random"), attr=what
            ) if what not in {"Generator", "BitGenerator", "SeedSequence"}:
                if what != "default_rng":
                    yield (
                        f"{source.path}:{node.lineno} uses np.random.{what}, whose state all share."
                        " Take a Generator as an argument"
                    )
                elif product and source.path not in GENERATORS_MADE_IN:
                    yield (
                        f"{source.path}:{node.lineno} makes a Generator. Take one as an argument,"
                        " or add the file to GENERATORS_MADE_IN with a reason"
                    )
            case ast.Call(func=ast.Attribute(attr="default_rng"), args=[], keywords=[]):
                yield (
                    f"{source.path}:{node.lineno} makes a Generator without a seed: no run of it"
                    " can be replayed. Pass one"
                )


def imports_openly(source: Source) -> Iterator[str]:
    """What a module needs is there when it runs, under its full name."""
    for node in source.nodes_of(ast.Name, ast.Attribute, ast.alias, ast.ImportFrom):
        match node:
            case (
                ast.Name("TYPE_CHECKING")
                | ast.Attribute(attr="TYPE_CHECKING")
                | ast.alias("TYPE_CHECKING")
            ):
                yield (
                    f"{source.path}:{node.lineno} imports for the type checker alone, which marks a"
                    " cycle. Move what both need further down"
                )
            case ast.ImportFrom(level=level) if level > 0:
                yield f"{source.path}:{node.lineno} imports relatively. Write the full name"


def names_nobody_elses_place(source: Source) -> Iterator[str]:
    """What we write works on other machines, and with other package indexes."""
    for number, line in enumerate(source.lines, start=1):
        if found := FORBIDDEN.search(line):
            advice = (
                "Name no package index: who installs has one"
                if found["registry"]
                else "Write a path that exists elsewhere: relative, or under the user's folders"
            )
            yield f"{source.path}:{number} holds {found[0]!r}. {advice}"


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` of a chain of names; of anything else, what no pattern matches."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else [""]), *reversed(names)])


def _is_bare_package(source: Source) -> bool:
    """Say whether it is an __init__.py without code; re-exports are no code."""
    plain = ast.Expr | ast.Import | ast.ImportFrom | ast.Assign
    return source.parts[-1] == "__init__" and all(
        isinstance(node, plain) for node in source.tree.body
    )


FOR_PYTHON: tuple[Rule, ...] = (
    has_a_docstring,
    says_goal_promise_and_source,
    has_short_functions,
    leaves_the_time_to_the_clock,
    keeps_sql_at_home,
    prints_through_the_terminal,
    takes_its_rng_from_outside,
    imports_openly,
)
FOR_CODE: tuple[Rule, ...] = (is_not_too_long, is_named_for_what_it_holds)
"""Python and SQL."""
FOR_EVERYTHING: tuple[Rule, ...] = (names_nobody_elses_place,)
