"""Tables of LALR parsers, which lark takes long to make of a grammar: made once, and kept in files beside the grammars.

A file says of which grammar and of which release of lark it is. For any other the parser is made of the grammar, as if there
were no file. `make parsers` writes them anew; a test says when that is due.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from gateway.model.fast_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar, the file of its tables, and what lark is told about it: `lexer`, `start`."""

    text: str
    tables: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tables are made of, as a digest."""
        made_of = [lark.__version__, self.text, sorted(self.options.items())]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()

    def parser(self, **callbacks: Any) -> lark.Lark:
        """A parser that calls these while it parses: `transformer`, `lexer_callbacks`."""
        try:
            kept = json.loads(self.tables.read_bytes())
            if kept["digest"] == self.digest:
                return lark.Lark.__new__(lark.Lark)._load(_with_numbers(kept["tables"]), **callbacks)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return lark.Lark(self.text, parser="lalr", **self.options, **callbacks)

    def keep(self) -> None:
        """Write the tables."""
        made = lark.Lark(self.text, parser="lalr", **self.options)
        data, memo = made.memo_serialize([TerminalDef, Rule])
        document = {"digest": self.digest, "tables": {"data": data, "memo": memo}}
        self.tables.write_text(json.dumps(document, separators=(",", ":")) + "\n")


def _with_numbers(value: Any) -> Any:
    """The numbers of states and symbols are keys, which JSON has as texts."""
    if isinstance(value, dict):
        return {int(key) if key.isdecimal() else key: _with_numbers(each) for key, each in value.items()}
    return [_with_numbers(each) for each in value] if isinstance(value, list) else value
