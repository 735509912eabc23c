"""The program: `tablegate`, or `python -m tablegate`. Makes the server's packages importable, first of all, and runs it."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line (gateway/__main__.py)."""
    here = Path(__file__).resolve().parent
    # Installed, the packages lie in here; in a checkout they lie beside.
    sys.path.insert(0, str(here if (here / "gateway").is_dir() else here.parent))
    from gateway.__main__ import main as run
    from gateway.__main__ import words_of

    run(words_of(sys.argv[0], sys.argv[1:]), prog_name="tablegate")


if __name__ == "__main__":
    main()
