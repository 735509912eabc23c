"""`tablegate diff A B`: the rows that differ, by key and attribute, in kinds that both services support."""

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
    """Write each row that differs as soon as it is found, and return the exit status.

    `write` is called with texts that end in a newline. `limit` is the maximum number of rows. All if None. `form` is
    `text` or `jsonl`, which has a JSON object on each line:
    {"what": "missing" | "extra" | "changed" | "kind", "key": [partition, sort], "attributes": [...], ...}.

    The exit status is 0 if equal and 1 if different. Raises TransferError, for which the command ends with 2.
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
