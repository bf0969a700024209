"""Where a fragment stands."""

import pytest

from tests.mutants.places import NotOnePlaceError, find, fragment, scope_of
from tests.mutants.tokens import tokens_of

PYTHON = """
class Cell:
    def commit(self, claims):
        if not claims:
            return None
        return self.judge(claims, claims)

    def judge(self, claims, seen):
        return [claim for claim in claims if claim.sequence == seen.sequence]

def commit(cell):
    if not cell:
        return None
"""
SQL = """
CREATE FUNCTION omega.park(_jobs bigint[]) RETURNS void AS $$
    UPDATE job SET state = 'parked' WHERE id = ANY (_jobs);
$$;
CREATE FUNCTION omega.wake(_jobs bigint[]) RETURNS void AS $$
    UPDATE job SET state = 'pending' WHERE id = ANY (_jobs) AND state = 'parked';
$$;
"""


def line_of(code: str, function: str = "", *, text: str = PYTHON, is_sql: bool = False) -> int:
    """Return the line of a fragment's first token; the first line after the blank one is 1."""
    tokens = tokens_of(text, is_sql=is_sql)
    scope = scope_of(function, tokens, text, is_sql=is_sql)
    place = find(fragment(code, is_sql=is_sql), tokens, scope)
    return text.count("\n", 0, tokens[place.at].start)


def test_a_fragment_is_found_under_its_own_names() -> None:
    assert 5 == line_of("self . judge( claims,claims )")


def test_a_fragment_is_found_under_other_names() -> None:
    assert 5 == line_of("this.weigh(asked, asked)")
    assert 8 == line_of("row.version == view.version")


@pytest.mark.parametrize("code", ["this.weigh(asked, wanted)", "row.version == view.revision"])
def test_two_names_do_not_stand_for_one(code: str) -> None:
    with pytest.raises(NotOnePlaceError, match="0 places"):
        line_of(code)


def test_one_name_does_not_stand_for_two() -> None:
    with pytest.raises(NotOnePlaceError, match="0 places"):
        line_of("row.version == row.version")


def test_operators_keywords_and_numbers_stay() -> None:
    with pytest.raises(NotOnePlaceError, match="0 places"):
        line_of("claim.sequence != seen.sequence")


def test_own_names_come_before_other_names() -> None:
    assert 3 == line_of("if not claims:")
    assert 11 == line_of("if not cell:")


def test_the_function_that_is_named_is_searched() -> None:
    assert 3 == line_of("if not jobs:", "Cell.commit")


def test_a_coroutine_is_searched_to_its_end() -> None:
    text = "".join(
        f"\nasync def {name}(page):\n    if not page.full:\n        await page\n"
        for name in ("send", "close")
    )

    assert 6 == line_of("if not page.empty:", "close", text=text)


@pytest.mark.parametrize("function", ["", "weigh", "commit"])
def test_the_file_is_searched_if_no_one_function_has_the_name(function: str) -> None:
    with pytest.raises(NotOnePlaceError, match="2 places"):
        line_of("if not jobs:", function)


def test_a_function_in_sql_is_searched_by_its_name() -> None:
    code = "UPDATE task SET status = 'off' WHERE n = ANY (_numbers)"

    assert 5 == line_of(code, "wake", text=SQL, is_sql=True)
    with pytest.raises(NotOnePlaceError, match="2 places"):
        line_of(code, text=SQL, is_sql=True)


def test_three_dots_in_a_string_stand_for_any_string() -> None:
    code = "state = '...' WHERE id = ANY (_jobs) AND"

    assert 5 == line_of(code, text=SQL, is_sql=True)
