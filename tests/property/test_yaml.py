"""Both of PyYAML's loaders read the same of whatever a text holds, or both refuse it."""

from collections.abc import Callable

import yaml
from hypothesis import given
from hypothesis import strategies as st

from omega.errors import BadInput
from omega.workload.yaml_events import LOADERS, Loader
from omega.workload.yaml_lines import Place, documents
from tests.fixtures.doses import examples

Read = list[tuple[object, Place]]

TEXTS = st.text(max_size=9) | st.sampled_from(
    [
        "",
        "a b",
        "yes",
        "010",
        "1.5",
        "~",
        "2024-01-31",
        "a: b",
        "# c",
        "- d",
        "e\nf\n",
        "é?",
        "\x85",
    ]
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)
COMMENTS = st.sampled_from(["", "\n", "# a\tb\n", "   # c\n", "\n\n"])


def read(text: str, loader: Callable[[str], Loader]) -> tuple[Read | None, int | None]:
    """Return what is read with the lines, or the line of the refusal."""
    try:
        return [(one.value, one.place) for one in documents(text, "f", loader)], None
    except BadInput as refusal:
        line = refusal.line
    assert line is not None
    assert 1 <= line <= max(1, len(text.splitlines()))
    return None, line


@st.composite
def written(draw: st.DrawFn) -> str:
    """Documents as somebody may write them: in any style, with comments and any breaks."""
    parts = []
    for value in draw(st.lists(PLAIN, max_size=3)):
        text = yaml.safe_dump(
            value,
            allow_unicode=draw(st.booleans()),
            default_flow_style=draw(st.sampled_from([True, False, None])),
            default_style=draw(st.sampled_from([None, "'", '"', "|", ">"])),
            indent=draw(st.integers(2, 5)),
            width=draw(st.sampled_from([10, 80])),
        )
        parts.append(draw(COMMENTS) + "---\n" + draw(COMMENTS) + text)
    return "".join(parts).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@examples(400)
@given(written())
def test_both_read_what_is_written(text: str) -> None:
    first, *others = (read(text, loader) for loader in LOADERS)

    assert [first] * len(others) == others


@examples(400)
@given(written(), st.data())
def test_both_read_or_refuse_what_is_cut_off(text: str, data: st.DataObject) -> None:
    text = text[: data.draw(st.integers(0, len(text)))]
    first, *others = (read(text, loader) for loader in LOADERS)

    assert [first] * len(others) == others


@examples(800)
@given(st.text(alphabet="ab:-[]{}&|>%@`'\"#,<=~\n 01.é\ufeff\t\r\x85\u2028\x07", max_size=40))
def test_both_read_or_refuse_what_looks_like_yaml(text: str) -> None:
    first, *others = (read(text, loader)[0] for loader in LOADERS)

    assert [first] * len(others) == others
