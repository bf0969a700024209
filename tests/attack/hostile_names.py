"""Invalid names: unprintable, empty or too long; and the SQLSTATE that refuses them."""

from typing import Any

INVALID = "22023"
UNPRINTABLE = {
    "ESC": "\x1b[2J",
    "BEL": "a\x07",
    "newline": "a\nb",
    "DEL": "a\x7f",
    "C1": "a\x9b2J",
    "NEL": "a\x85",
    "right to left": "a\u202eb",
    "isolate": "a\u2067b",
    "zero width": "a\u200bb",
    "joiner": "a\u200db",
    "byte order mark": "a\ufeff",
    "line separator": "a\u2028b",
    "soft hyphen": "a\u00adb",
    "Arabic letter mark": "a\u061cb",
    "vowel separator": "a\u180eb",
    "swapping": "a\u206ab",
    "annotation": "a\ufff9b",
    "filler": "\u3164",
    "tag": "a\U000e0041b",
}
INVALID_NAMES = {**UNPRINTABLE, "empty": "", "long": "x" * 201}
NON_STRINGS: tuple[Any, ...] = (None, 1, True, [], {})
