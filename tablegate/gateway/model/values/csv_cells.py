"""Cells of CSV files that no spreadsheet takes for a formula, and their texts.

A spreadsheet evaluates a cell that begins with one of these characters (OWASP, "CSV Injection"). An apostrophe in front
prevents that. A text that has apostrophes before such a character gets one more, so each cell has one text.
"""

from __future__ import annotations

import re

from tablegate.gateway.model.values.values import NUMBERS, Kind

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def cell_of(text: str, kind: Kind = Kind.TEXT) -> str:
    """Return the cell for the text of a value. A negative number is no formula, and stays as it is."""
    is_number = kind in NUMBERS and text[-1:].isdigit()
    return f"'{text}" if _FORMULA.match(text) and not is_number else text


def text_of_cell(cell: str) -> str:
    """Return the text of a cell from `cell_of`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
