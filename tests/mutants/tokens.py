"""Tokens of Python and of SQL: what is left of a text without its white space and comments.

Goal     Compare a fragment of code with a file whatever its layout.
Promise  Each token knows where it stands in the text. Fragments need not be whole statements. The
         end of a logical line is a token of Python. `${name}` in SQL is a part of a name, and
         expressions inside an f-string are code. The tokens do not depend on Python's version.
Source   The lexical grammars of Python and of PostgreSQL, as far as this project uses them.
"""

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from itertools import zip_longest

import numpy as np


class Kind(Enum):
    """What a token is to whoever compares it."""

    FIXED = auto()
    """Keywords, built-in names, operators, numbers and most strings: equal, or another token."""
    NAME = auto()
    """Somebody chose it, and may rename it."""
    WORD = auto()
    """A string that is a single word, such as a column or a state: a name in quotation marks."""
    ANY_STRING = auto()
    """`'...'` stands for any string."""
    NEWLINE = auto()


@dataclass(frozen=True)
class Token:
    """One token."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def is_string(self) -> bool:
        """Whether it is a string, or a piece of one."""
        return self.text[:1] in ("'", '"')

    @cached_property
    def content(self) -> str:
        """What is compared: the text, whichever quotation marks it has."""
        return self.text.replace('"', "'") if self.is_string else self.text


CLOSING = frozenset(")]}")
ANY_STRINGS = ("'...'", '"..."')
_WORD_STRING = re.compile(r"(['\"])[A-Za-z_]\w*\1")

_PYTHON = re.compile(
    r"""
    (?P<skip> [ \t\f]+ | \#[^\n]* | \\\n )
  | (?P<newline> \n )
  | (?P<string> [rRbBuUfF]{0,2} (?: \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
                | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
  | (?P<number> 0[xX][\da-fA-F_]+ | \d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?\d+)? )
  | (?P<word> [^\W\d]\w* )
  | (?P<operator> \.\.\. | \*\*=? | //=? | <<=? | >>=? | -> | := | [-+*/%&|^@<>=!]=? | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SQL = re.compile(
    r"""
    (?P<skip> \s+ | --[^\n]* | /\*.*?\*/ )
  | (?P<string> '(?:''|[^'])*' )
  | (?P<number> \d+(?:\.\d+)?(?:e[+-]?\d+)? )
  | (?P<word> (?:\$\{\w+\}|[A-Za-z_])(?:\$\{\w+\}|\w)* )
  | (?P<operator> \$\$ | :: | := | \.\. | <= | >= | <> | != | \|\| | @> | <@ | ->>? | => | && | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_F_STRING = re.compile(r"\{\{|\}\}|\{(?P<code>[^{}]*)\}")
_IN_SQL_STRING = re.compile(r"(?P<code>\$\{\w+\})")

PYTHON_WORDS = frozenset((*keyword.kwlist, *dir(builtins), "np"))
"""Nobody renames these, except as an attribute of something else."""
PYTHON_ATTRIBUTES = frozenset(("all", "any", "max", "min"))
"""Methods of numpy's arrays that differ in nothing but the name."""
SQL_WORDS = frozenset(
    """
    abs array_agg array_fill array_length array_lower array_ndims array_position bigint bigserial
    bool_and bool_or boolean bytea cardinality ceil chr clock_timestamp coalesce count
    current_database current_setting double epoch excluded extract false floor format
    gen_random_uuid generate_series generate_subscripts greatest hashtext int4multirange int4range
    integer interval isempty jsonb jsonb_agg jsonb_array_elements jsonb_array_elements_text
    jsonb_array_length jsonb_build_array jsonb_build_object jsonb_path_exists jsonb_path_query
    jsonb_typeof least length lower max min new nextval now nullif numeric octet_length old
    plpgsql precision random range_agg record regclass row_number scale session_user smallint sql
    string_agg sum text tid timestamptz to_jsonb trigger true unnest upper uuid void width_bucket
    xid xid8
    """.split()  # noqa: SIM905
)
"""Built-in functions, types and constants. Keywords are the words in capital letters."""


def tokens_of(text: str, *, is_sql: bool) -> list[Token]:
    """Return the tokens of a text or of a fragment, in order.

    A comma before a closing bracket is left out: formatters add and remove it.
    """
    if is_sql:
        return list(_sql(text))
    tokens = list(_python(text))
    return [
        token
        for token, after in zip_longest(tokens, tokens[1:])
        if token.text != "," or after is None or after.text not in CLOSING
    ]


def _python(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    depth, before, previous = 0, "", ""
    for match in _PYTHON.finditer(text, start, len(text) if end is None else end):
        shape, word = match.lastgroup, match[0]
        if shape == "skip" or (shape == "newline" and (depth > 0 or previous in ("", "\n"))):
            continue
        if shape == "newline":
            yield Token(Kind.NEWLINE, word, *match.span())
        elif shape == "string":
            quotes = word.lower()[:2].rstrip("\"'")
            yield from _string(text, match, _IN_F_STRING if "f" in quotes else None)
        else:
            depth = max(0, depth + (word in "([{") - (word in CLOSING))
            of_numpy = previous == "." and before == "np"
            fixed = PYTHON_ATTRIBUTES if previous == "." and not of_numpy else PYTHON_WORDS
            is_fixed = word in fixed or (of_numpy and hasattr(np, word))
            is_name = shape == "word" and not is_fixed
            yield Token(Kind.NAME if is_name else Kind.FIXED, word, *match.span())
        before, previous = previous, word


def _sql(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    for match in _SQL.finditer(text, start, len(text) if end is None else end):
        shape, word = match.lastgroup, match[0]
        if shape == "string":
            yield from _string(text, match, _IN_SQL_STRING)
        elif shape != "skip":
            is_fixed = word.isupper() or word in SQL_WORDS or word.startswith("pg_")
            is_name = shape == "word" and not is_fixed
            yield Token(Kind.NAME if is_name else Kind.FIXED, word, *match.span())


def _string(text: str, match: re.Match[str], code: re.Pattern[str] | None) -> Iterator[Token]:
    """Yield a string as one token, or in pieces where there is code in it."""
    start, end = match.span()
    for inner in code.finditer(text, start, end) if code else ():
        if inner["code"] is not None:
            yield Token(Kind.FIXED, text[start : inner.start("code")], start, inner.start("code"))
            yield from (_sql if code is _IN_SQL_STRING else _python)(text, *inner.span("code"))
            start = inner.end("code")
    rest = text[start:end]
    if rest in ANY_STRINGS:
        kind = Kind.ANY_STRING
    else:
        kind = Kind.WORD if _WORD_STRING.fullmatch(rest) else Kind.FIXED
    yield Token(kind, rest, start, end)
