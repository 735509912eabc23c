"""Settings of the C library's allocator: memory freed by a request is kept for the next one.

A page of rows takes several megabytes, and a tick holds those of many requests. By default, glibc returns such memory
to the system at once. Each further tick then pays for page faults, a third of the cost of sixteen readers of pages.
"""

from __future__ import annotations

import ctypes
import sys

# glibc's numbers for mallopt (malloc.h).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
_LARGEST_BYTES = 32 << 20  # glibc's maximum, larger blocks are mapped separately


def keep_freed_memory() -> bool:
    """Keep up to 64 MiB of freed memory instead of returning it. Return True if the C library supports it (glibc
    does)."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Set both, because setting either disables the automatic growth of the other.
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES))
