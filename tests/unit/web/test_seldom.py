"""What a stranger may cause is said seldom."""

from omega.clock import ManualClock
from omega.web.seldom import AGAIN_S, Seldom


def test_a_sentence_is_said_at_once_and_then_once_in_a_while() -> None:
    clock, log = ManualClock(), list[str]()
    seldom = Seldom(log.append, clock)
    for _ in range(1_001):
        seldom("a login with a wrong token")
    seldom("another")
    clock.advance(AGAIN_S)
    seldom("a login with a wrong token")
    seldom("another")

    assert [
        "a login with a wrong token",
        "another",
        "a login with a wrong token (1,000 more since)",
        "another",
    ] == log
