"""Both of PyYAML's loaders, and how much of a text they parse."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import yaml

from omega.errors import BadInput
from omega.limits import Limits
from omega.workload import yaml_events, yaml_lines
from omega.workload.yaml_events import LOADERS, Events, Loader
from omega.workload.yaml_lines import documents


@dataclass
class Counted:
    """The fastest loader; counts the events that it parsed."""

    parsed: int = 0
    _loader: Loader = field(init=False)

    def __call__(self, text: str) -> Loader:
        self._loader = LOADERS[0](text)
        return self

    def get_event(self) -> yaml.Event | None:
        self.parsed += 1
        return self._loader.get_event()


def test_libyaml_is_used_where_it_is_there() -> None:
    assert yaml.__with_libyaml__ == (LOADERS[0].__name__ == "CSafeLoader")
    assert yaml.SafeLoader is LOADERS[-1]


@pytest.mark.parametrize(
    ("text", "events", "said"),
    [
        # A stream's start, and three events for each document that is allowed.
        ("---\n" * 1_000, 1 + 3 * 2 + 1, "line 3: there are more than 2 documents in it; split it"),
        ("--- 1\n...\n" * 1_000, 1 + 3 * 2 + 1, "line 5: there are more than 2 documents"),
        # A stream's, a document's and a list's start.
        ("- &a 1\n" + "- *a\n" * 1_000, 3 + 2, "line 2: aliases are not read here; write it out"),
        ("- 1\n" * 1_000, 3 + 100, "line 100: there are more than 100 keys and values in it"),
        ("- {}\n" * 1_000, 3 + 199, "line 100: there are more than 100 keys and values in it"),
        ("a: 1\n" * 1_000, 3 + 3, "line 2, field a: this key occurs twice"),
        ("".join(f"a{n}: 1\n" for n in range(1_000)), 3 + 100, "line 50: there are more than 100"),
        ("[" * 100_000, 3 + 16, "line 1: this is nested too deeply"),
        ("{" * 100_000, 4, "line 1: a key must be a word"),
        ("- " * 100_000, 3 + 16, "line 1: this is nested too deeply"),
        (
            "".join(f"{' ' * n}a:\n" for n in range(1_000)),
            2 + 2 * 16 + 1,
            "line 17: this is nested",
        ),
        (f"? {'x' * 100_000}\n: 1", 4, "a key is longer than 200 characters"),
        ("%TAG !a! b\n" * 100_000, 0, "line 1: a line that begins with % is not read here"),
    ],
)
def test_nothing_is_parsed_after_the_first_one_too_many(
    text: str, events: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(jobs_per_submission_max=2, yaml_values_max=100)
    monkeypatch.setattr(yaml_lines, "LIMITS", limits)
    monkeypatch.setattr(yaml_events, "LIMITS", limits)
    loader = Counted()

    with pytest.raises(BadInput) as refusal:
        documents(text, "f", loader)

    assert said in str(refusal.value)
    assert events == loader.parsed


def test_as_much_as_is_allowed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(jobs_per_submission_max=2, yaml_values_max=100)
    monkeypatch.setattr(yaml_lines, "LIMITS", limits)
    monkeypatch.setattr(yaml_events, "LIMITS", limits)
    text = "- 1\n" * 98 + "---\n"

    assert [[1] * 98, None] == [document.value for document in documents(text, "f")]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 1, "not YAML: while parsing a flow node"),
        ("a: [\n", 1, "not YAML: while parsing a flow node"),
        ("a: 1\nb: {", 2, "not YAML"),
        ("a: 1\nb: {\n\n\n", 4, "not YAML"),
        ("a: 1\nb: 'c\nd", 3, "not YAML: while scanning a quoted scalar, found unexpected end"),
        ("a: 1\n  b: 2", 2, "not YAML: mapping values are not allowed"),
        ("a:\n  - b\n c: 2", 3, "not YAML: while parsing a block mapping"),
        ("a: 1\nb\nc: 2", 3, "not YAML: while scanning a simple key, could not find expected ':'"),
        ("- a\nb: 1", 2, "not YAML: while parsing a block collection"),
        ("a: @b", 1, "not YAML: while scanning for the next token"),
        ("a: 1\r\nb: }", 2, "not YAML"),
        ("a: 1\rb: }", 2, "not YAML"),
        ("a: 1\x85b: }", 2, "not YAML"),
        ("a: 1\u2028\u2029b: }", 3, "not YAML"),
        ("a: 1\nb: \x07", 2, "not YAML: special characters are not allowed"),
        ("a: 1\rb: \x00", 2, "not YAML: special characters are not allowed"),
        ("a: 1\n\ufeffb: 2", 2, "not YAML: a byte order mark stands inside it"),
        ('a: 1\nb: "\\U99999999"', 2, "not YAML"),
        ("a: 1\nb: !x!y z", 2, "not YAML: while parsing a node, found undefined tag handle"),
        ("%YAML 1.2\n--- a", 1, "a line that begins with % is not read here"),
        ("a\n---\n%TAG ! b\n--- a", 3, "a line that begins with % is not read here"),
        ("# a\tb\na:\t1", 2, "tabs are read in comments only; write spaces"),
        ("a: 'b\tc'", 1, "tabs are read in comments only"),
        ("a: b#\tc", 1, "tabs are read in comments only"),
        ("b: 1\na: 0 \t", 2, "tabs are read in comments only"),
        ("a: 0 \t# b", 1, "tabs are read in comments only"),
        ("a: |#b\n  c", 1, "not YAML: while scanning a block scalar"),
        ("- 1\n- !!str &x |2-#b\n   c", 2, "not YAML: while scanning a block scalar"),
        ("a: {b:[c]}", 1, "not YAML: while scanning a plain scalar, found unexpected ':'"),
        ("a: {b\n  :[c]}", 2, "not YAML: while scanning a plain scalar, found unexpected ':'"),
        ("a: {\n b?c: d}", 2, "not YAML: while .*'[?}]'"),
        ("- &a 1\n- *b", 2, "aliases are not read here"),
    ],
)
def test_both_loaders_refuse_alike(
    text: str, line: int, said: str, loader: Callable[[str], Loader]
) -> None:
    with pytest.raises(BadInput, match=said) as refusal:
        documents(text, "f", loader)

    assert ("f", line) == (refusal.value.file, refusal.value.line)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeffa: 1", {"a": 1}),
        ("a: 1 # b\tc\n#\td\n", {"a": 1}),
        ("a: 'b # c\td'", {"a": "b # c\td"}),
        ("a: b?\n? c\n: d?e", {"a": "b?", "c": "d?e"}),
        ("[a: 1, 'b?', \"c\": d, 'e':[f]]", [{"a": 1}, "b?", {"c": "d"}, {"e": ["f"]}]),
        ("a: | # b\n  c\n  d\ne: >-\n  f\n  g", {"a": "c\nd\n", "e": "f g"}),
        ("a: &x !!str 1\n<<: {y: 2}", {"a": "1", "<<": {"y": 2}}),
        ("a: 5%\nb: '\n  %c'", {"a": "5%", "b": " %c"}),
    ],
)
def test_both_loaders_read_alike(text: str, value: object, loader: Callable[[str], Loader]) -> None:
    assert [value] == [document.value for document in documents(text, "f", loader)]


@pytest.mark.parametrize("loader", LOADERS)
def test_a_loaders_sentence_is_shortened(loader: Callable[[str], Loader]) -> None:
    with pytest.raises(BadInput, match="undefined tag handle") as refusal:
        documents(f"!{'x' * 100_000}!y z", "f", loader)

    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("loader", LOADERS)
def test_the_last_event_is_the_streams_end(loader: Callable[[str], Loader]) -> None:
    events = Events("", "f", loader)

    assert isinstance(events.take(), yaml.StreamStartEvent)
    assert isinstance(events.take(), yaml.StreamEndEvent)
