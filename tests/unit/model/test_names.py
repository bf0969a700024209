"""Which characters a name may have."""

import pytest

from omega.model.names import UNPRINTABLE, is_printable_name


@pytest.mark.parametrize("text", ["", "train 7", "naïve · 训练 ✓", "é", "\U0001f680", "a\ufe0f"])
def test_letters_marks_and_signs_may_stand_in_a_name(text: str) -> None:
    assert is_printable_name(text)


@pytest.mark.parametrize("character", ["\0", "\n", "\x1b", "\x7f", "\x9b", "\u202e", "\ud800"])
def test_what_python_does_not_print_may_not(character: str) -> None:
    assert not is_printable_name(f"a{character}b")


@pytest.mark.parametrize("character", ["\u115f", "\u1160", "\u3164", "\uffa0"])
def test_letters_that_are_drawn_as_nothing_may_not(character: str) -> None:
    assert character.isprintable(), "python takes them"
    assert not is_printable_name(f"a{character}b")


def test_nothing_else_is_refused_besides_what_python_does_not_print() -> None:
    characters = [chr(code) for code in range(0x110000)]

    assert ["\u115f", "\u1160", "\u3164", "\uffa0"] == [
        each for each in characters if each.isprintable() and UNPRINTABLE.match(each)
    ]
