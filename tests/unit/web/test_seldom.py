"""What a stranger may cause is said seldom."""

from omega.clock import ManualClock
from omega.web.seldom import AGAIN_S, SENTENCES_MAX, Seldom


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


def test_of_many_sentences_the_oldest_are_forgotten() -> None:
    log = list[str]()
    seldom = Seldom(log.append, ManualClock())
    sentences = [str(number) for number in range(SENTENCES_MAX + 1)]
    for sentence in (*sentences, *sentences[1:], sentences[0]):
        seldom(sentence)

    assert [*sentences, sentences[0]] == log
