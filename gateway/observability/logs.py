"""What the gateway writes down: one JSON object a line on standard error, with the id of the request it is about.

Knows the form of a line. What is worth a line is decided where it happens.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import orjson

log = logging.getLogger("tablegate")


class JsonFormatter(logging.Formatter):
    """`{"at", "level", "message", ...facts, "error"}`; facts are what the caller gave as `extra={"facts": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON: when, how serious, what, the facts, and the traceback if there is one."""
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=repr).decode()


def configure(level: str) -> None:
    """Send everything of that severity and above to standard error; replaces what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "werkzeug", "asyncio"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))


def error(message: str, failure: BaseException | None = None, **facts: Any) -> None:
    """Write a line about something that should not have happened."""
    log.error(message, exc_info=failure, extra={"facts": facts})


def warning(message: str, **facts: Any) -> None:
    """Write a line about something that will fail if it is left alone."""
    log.warning(message, extra={"facts": facts})


def info(message: str, **facts: Any) -> None:
    """Write a line about something that is worth it in normal times."""
    log.info(message, extra={"facts": facts})
