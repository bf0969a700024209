"""Tokens of Python and of SQL."""

import io
import re
import tokenize

import pytest

from tests.architecture.tree import code
from tests.mutants.tokens import Kind, tokens_of
from tests.unit.mutants.planting import FILES

LEFT_OUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


def kinds(text: str, *, is_sql: bool = False) -> list[tuple[Kind, str]]:
    return [(token.kind, token.text) for token in tokens_of(text, is_sql=is_sql)]


@pytest.mark.parametrize("folder", ["omega", "schedulers"])
def test_the_tokens_of_python_are_those_of_the_standard_library(folder: str) -> None:
    """In the files that mutants are planted in.

    Their boundaries are not compared: Python 3.12 divides f-strings, and 3.11 does not.
    """
    files = {file for file in FILES if file.startswith(f"{folder}/")}
    sources = [source for source in code(".py") if source.path in files]

    assert sources
    for source in sources:
        theirs = tokenize.generate_tokens(io.StringIO(source.text).readline)
        expected = "".join(token.string for token in theirs if token.type not in LEFT_OUT)
        actual = "".join(token.text for token in tokens_of(source.text, is_sql=False))

        assert squeezed(expected) == squeezed(actual), source.path


def squeezed(text: str) -> str:
    return re.sub(r"[\s{},]", "", text)


def test_comments_blank_lines_and_line_breaks_in_brackets_are_no_tokens() -> None:
    assert kinds("f(a, b)\ng\n") == kinds("f(  # one\n  a,\n\n  b,\n)\n\n# two\ng\n")


def test_names_are_told_from_keywords_and_built_ins() -> None:
    names = [text for kind, text in kinds("if len(np.where(a.where.max)): b") if kind is Kind.NAME]

    assert ["a", "where", "b"] == names


def test_names_inside_an_f_string_are_names() -> None:
    assert (Kind.NAME, "job") in kinds('f"{job.id:>4} ended"')


def test_names_in_sql_include_what_is_rendered() -> None:
    text = "SELECT max(m.${kind}_used) FROM machine m  -- of a kind\n WHERE m.state = 'open'"
    names = [text for kind, text in kinds(text, is_sql=True) if kind is not Kind.FIXED]

    assert ["m", "${kind}_used", "machine", "m", "m", "state", "'open'"] == names


def test_a_limit_inside_a_string_of_sql_is_a_name() -> None:
    assert (Kind.NAME, "${depth_max}") in kinds("'$.**{${depth_max}} ?'", is_sql=True)
