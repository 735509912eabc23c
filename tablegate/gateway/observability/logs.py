"""The log: one JSON object per line on standard error, with the id of the request if there is one."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import orjson

from tablegate.gateway.configuration.secrets import masked, masked_values

log = logging.getLogger("tablegate")


class JsonFormatter(logging.Formatter):
    """A formatter of lines `{"at", "level", "message", ...facts, "error"}`.

    The facts come from `extra={"facts": {...}}`. `error` is the traceback, if there is one. Credentials in URLs and headers
    are masked in all of them.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "message": masked(record.getMessage()),
        }
        line.update(masked_values(getattr(record, "facts", {})))
        if record.exc_info:
            line["error"] = masked(self.formatException(record.exc_info))
        return orjson.dumps(line, default=lambda value: masked(repr(value))).decode()


def configure(level: str) -> None:
    """Log messages of that severity and above to standard error. Replaces the former configuration."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "werkzeug", "asyncio"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))


def error(message: str, failure: BaseException | None = None, **facts: Any) -> None:
    """Log an unexpected failure."""
    log.error(message, exc_info=failure, extra={"facts": facts})


def warning(message: str, **facts: Any) -> None:
    """Log a condition that leads to a failure unless it is corrected."""
    log.warning(message, extra={"facts": facts})


def info(message: str, **facts: Any) -> None:
    """Log an event of normal operation."""
    log.info(message, extra={"facts": facts})
