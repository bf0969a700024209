"""Texts that do something to a terminal, and what of them may reach one."""

import re

HOSTILE = {
    "clears the screen": "\x1b[2J\x1b[H",
    "hides what follows": "\x1b[8m",
    "links": "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\",
    "fills the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "names the window": "\x1b]0;evil\x07",
    "asks for an answer": "\x1b[6n\x1bP$q\x1b\\",
    "controls with one character": "\x9b2J\x9d0;evil\x9c\x90\x85",
    "rings": "\x07",
    "writes over": "good\x08\x08\x08\x08evil\x7f",
    "returns": "good\revil",
    "tabs": "a\tb\x0bc\x0cd",
    "makes a line": "a\n  9  fine  running\n",
    "makes a line of Unicode": "a\u2028b\u2029c",
    "turns the direction": "\u202eevil\u202c\u2066evil\u2069\u200f\u061c",
    "has no width": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg",
    "is drawn as nothing": "a\u034fb\u3164c\ufe0fd\U000e0100e\u2800",
    "is no character": "\ud800a\udfff\uffff",
    "ends a string": "a\x00b",
    "is markup": "[red]red[/] [link=http://evil]here[/link] [/]",
    "is half of markup": "[bold] [/red] [@click=evil]a :bomb: \\[",
    "are spaces": "a\u00a0b\u3000c",
}
"""By what each does; together with all others it is as long as a name may be."""

LONG = "x" * 50_000
LONG_AND_UNPRINTABLE = "\x1b\u202e" * 25_000

STYLING = re.compile(r"\x1b\[[0-9;]*m")
"""What rich writes to style a text."""
OF_LIVE_SCREENS = re.compile(r"\x1b\[\?(?:25|1049)[hl]|\x1b\[H|\x1b\[[0-9]*[AJK]|\r")
"""What rich writes besides while a screen changes: it hides and moves the cursor."""


def groups() -> list[str]:
    """Return the texts, several in one: each group is shorter than what is cut."""
    texts = list(HOSTILE.values())
    return ["|".join(texts[at : at + 5]) for at in range(0, len(texts), 5)]


def without_styles(written: str, *, live: bool = False) -> str:
    """Leave out what rich writes to style texts, and to move the cursor of a live screen."""
    plain = STYLING.sub("", written)
    return OF_LIVE_SCREENS.sub("", plain) if live else plain


def raw_in(written: str) -> list[str]:
    """Return the characters that should not have reached a terminal."""
    nothing = "\u034f\u3164\ufe0f\U000e0100"
    return sorted(
        {each for each in written if each in nothing or not (each + "x").isprintable()} - {"\n"}
    )
