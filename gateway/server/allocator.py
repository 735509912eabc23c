"""The C library's memory: what a request gave back is kept for the next one. Knows nothing of requests.

A page of rows is a megabyte several times over, and a tick holds those of many requests. glibc gives such memory back to the
system as soon as it is free, and each next tick pays for it anew, page fault by page fault: a third of what sixteen readers of
pages cost.
"""

from __future__ import annotations

import ctypes
import sys

# glibc's numbers for mallopt (malloc.h).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
_LARGEST_BYTES = 32 << 20  # what is larger is asked of the system by itself; glibc takes no higher number


def keep_freed_memory() -> bool:
    """Keep up to 64 MiB that are free instead of giving them back. Whether the C library can (glibc can)."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Both, because either ends the growing of the other, which is what glibc does if it is left alone.
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES))
