"""Rewrite code without changing what it does: other names, other comments, other layout."""

from itertools import pairwise

from tests.mutants.tokens import Kind, Token, tokens_of

SUFFIX = "_renamed"


def renamed_token(token: Token) -> str:
    """Return a token under its new name, if it is a name or a string of one word."""
    if token.kind is Kind.NAME and token.text.endswith("}"):
        return f"{token.text[:-1]}{SUFFIX}}}"  # ${kind}
    if token.kind is Kind.NAME:
        return f"{token.content}{SUFFIX}"
    if token.kind is Kind.WORD:
        return f"{token.content[:-1]}{SUFFIX}{token.content[-1]}"
    return token.content


def renamed(text: str, *, is_sql: bool) -> str:
    """Give every name of a text another one, the same one everywhere."""
    pieces, end = [], 0
    for token in tokens_of(text, is_sql=is_sql):
        name = renamed_token(token) if token.kind in (Kind.NAME, Kind.WORD) else token.text
        pieces += [text[end : token.start], name]
        end = token.end
    return "".join([*pieces, text[end:]])


def reformatted(text: str, *, is_sql: bool) -> str:
    """Put comments and lines where there is white space; in Python, at the ends of lines."""
    tokens = tokens_of(text, is_sql=is_sql)
    pieces, end = [], 0
    for token, after in pairwise(tokens):
        pieces.append(text[end : token.end])
        end = token.end
        if is_sql and text[end : after.start].isspace():
            pieces.append("\n\n  -- it's new\n  /* and so; is this */")
        elif token.kind is Kind.NEWLINE:
            pieces.append("\n# it's new\n\n")
        elif not is_sql and "\n" in text[end : after.start]:
            pieces.append("  # it's new\n\n")
    return "".join([*pieces, text[end:]])
