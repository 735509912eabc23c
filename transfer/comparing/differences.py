"""`tablegate diff A B`: the rows that differ, key by key and attribute by attribute, in kinds that both sides understand."""

from __future__ import annotations

import json
from collections.abc import Callable

from tablegate.transfer.comparing.reports import ExitStatus, difference_document, difference_lines
from tablegate.transfer.comparing.sides import CompareOptions
from tablegate.transfer.comparing.verifying import Verification, VerificationLevel
from tablegate.transfer.endpoints.endpoint import Endpoint


def diff(
    first: Endpoint,
    second: Endpoint,
    write: Callable[[str], object],
    limit: int | None = None,
    form: str = "text",
    options: CompareOptions = CompareOptions(),
    workers: int = 4,
) -> ExitStatus:
    """Write each row that differs as soon as it is found.

    `write` is given pieces of text that end a line. `limit`: after so many rows it stops; None: all. `form`: `text`, or `jsonl`,
    a JSON object a line: {"what": "missing" | "extra" | "changed" | "kind", "key": [partition, sort], "attributes": [...], ...}.

    The result is the exit status: 0 equal, 1 different. Raises TransferError (exit status 2: it could not be told).
    """
    verification = Verification(first, second, VerificationLevel("checksum"), options, workers)
    number = 0
    for difference in verification.differences():
        if number == limit:
            break
        number += 1
        if form == "jsonl":
            write(json.dumps(difference_document(difference), ensure_ascii=False) + "\n")
        else:
            write("\n".join(difference_lines(difference)) + "\n")
    return ExitStatus.DIFFERENT if number else ExitStatus.EQUAL
