"""The program `tablegate`, also run as `python -m tablegate`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line (gateway/__main__.py)."""
    from tablegate.gateway.__main__ import main as run
    from tablegate.gateway.__main__ import words_of

    run(words_of(sys.argv[0], sys.argv[1:]), prog_name="tablegate")


if __name__ == "__main__":
    main()
