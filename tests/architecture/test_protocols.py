"""A store's protocols stay narrow, and say of each method once what it must do."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.architecture.tree import Source, code

METHODS_MAX = 12
"""Methods that a protocol declares itself; what it inherits is not counted."""
PATH = "omega/store/protocols.py"


def protocols_of(source: Source) -> Iterator[tuple[ast.ClassDef, list[str]]]:
    """Return each protocol with the names of the methods that it declares itself."""
    for node in source.nodes_of(ast.ClassDef):
        if isinstance(node, ast.ClassDef) and any(map(_is_protocol, node.bases)):
            functions = ast.FunctionDef | ast.AsyncFunctionDef
            yield node, [each.name for each in node.body if isinstance(each, functions)]


def _is_protocol(base: ast.expr) -> bool:
    match base:
        case ast.Name("Protocol") | ast.Attribute(attr="Protocol"):
            return True
        case ast.Subscript(value=value):
            return _is_protocol(value)
    return False


def wide_protocols(source: Source) -> Iterator[str]:
    """Complain of each protocol that declares too many methods."""
    for protocol, methods in protocols_of(source):
        if len(methods) > METHODS_MAX:
            yield (
                f"{source.path}:{protocol.lineno}: {protocol.name} declares {len(methods)} methods,"
                f" more than {METHODS_MAX}. Split it by who calls them, and let a protocol of all"
                " inherit the parts"
            )


def repeated_methods(sources: Iterable[Source]) -> Iterator[str]:
    """Complain of each method that several protocols declare."""
    declared: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for protocol, methods in protocols_of(source):
            for method in methods:
                declared[method].append(f"{protocol.name} ({source.path}:{protocol.lineno})")
    for method, protocols in declared.items():
        if len(protocols) > 1:
            yield (
                f"{method} is declared by {' and by '.join(protocols)}. Declare it in one small"
                " protocol that they inherit"
            )


def store() -> list[Source]:
    return [source for source in code(".py", folders=("omega",)) if "store" in source.parts]


def test_a_store_protocol_declares_few_methods() -> None:
    complaints = [complaint for source in store() for complaint in wide_protocols(source)]

    assert not complaints, "\n".join(complaints)


def test_each_method_of_a_store_is_declared_once() -> None:
    complaints = list(repeated_methods(store()))

    assert not complaints, "\n".join(complaints)


def test_the_protocols_are_seen() -> None:
    names = {protocol.name for source in store() for protocol, _ in protocols_of(source)}

    assert {"Store", "SchedulerStore", "JobLeases", "RoundStore"} <= names


def a_protocol(methods: int, bases: str = "Protocol", name: str = "Wide") -> str:
    return f"class {name}({bases}):\n" + "".join(
        f"    def method_{number}(self) -> None: ...\n" for number in range(methods)
    )


def test_a_wide_protocol_is_found() -> None:
    for bases in ("Protocol", "Narrow, Protocol", "typing.Protocol", "Protocol[T]"):
        assert 1 == len(list(wide_protocols(Source(PATH, a_protocol(METHODS_MAX + 1, bases)))))
        assert [] == list(wide_protocols(Source(PATH, a_protocol(METHODS_MAX, bases))))


def test_a_class_that_implements_a_store_may_have_many_methods() -> None:
    assert [] == list(wide_protocols(Source(PATH, a_protocol(METHODS_MAX + 1, "MemoryJobs"))))


def test_a_method_that_is_declared_twice_is_found_across_files() -> None:
    one, other = Source(PATH, a_protocol(1)), Source("omega/store/rounds.py", a_protocol(2))

    assert 1 == len(list(repeated_methods([one, other])))
    assert [] == list(repeated_methods([other]))
