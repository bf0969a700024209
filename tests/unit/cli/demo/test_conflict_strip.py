"""The strip of conflicts over time."""

from omega.cli.demo.conflict_strip import strip


def test_nothing_yet_is_dots() -> None:
    assert "····" == strip([], 30.0, 4).plain


def test_each_column_shows_what_was_known_at_its_end() -> None:
    trail = [(0.0, 0.0), (1.0, 0.3), (2.0, 0.6), (3.0, 0.9)]

    assert "▃▅█·" == strip(trail, 4.0, 4).plain
    assert "▃▅██" == strip([*trail, (3.1, 0.9)], 4.0, 4).plain


def test_the_highest_column_stands_for_one_or_for_more_where_there_is_more() -> None:
    assert "▅" == strip([(1.0, 0.5)], 1.0, 1).plain
    assert "▂█" == strip([(1.0, 0.5), (2.0, 4.0)], 2.0, 2).plain


def test_the_strip_is_as_wide_as_it_is_told_to_be_however_long_it_takes() -> None:
    for until_s in (0.1, 3.0, 29.9, 30.0, 47.3):
        trail = [(step * until_s / 7, 0.2) for step in range(8)]

        assert 26 == len(strip(trail, 30.0, 26))


def test_much_conflict_is_coloured() -> None:
    colours = {str(span.style) for span in strip([(1, 0.0), (2, 0.3), (3, 0.9)], 3.0, 3).spans}

    assert {"green", "yellow", "red"} == colours
