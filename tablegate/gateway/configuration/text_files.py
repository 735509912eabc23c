"""Files of settings and secrets, as text."""

from __future__ import annotations

from pathlib import Path


class UnreadableText(ValueError):
    """A file that cannot be read as text. The message names the file and the reason."""


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8. Raises UnreadableText."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableText(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableText(f"cannot read {path}: it is not text in UTF-8") from None
