"""Work that several threads do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def all_at_once(works: list[Callable[[], None]]) -> None:
    """Run each function in a separate thread and raise the first error."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
