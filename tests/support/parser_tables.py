"""`make parsers`: the tables of all parsers are written anew (gateway/parser_tables.py)."""

from __future__ import annotations

from adapters.azuretable.queries import filter_grammar
from adapters.dynamodb.expressions import grammar
from adapters.dynamodb.partiql import parsing

GRAMMARS = (grammar.GRAMMAR, parsing.GRAMMAR, filter_grammar.GRAMMAR)

if __name__ == "__main__":
    for each in GRAMMARS:
        each.keep()
