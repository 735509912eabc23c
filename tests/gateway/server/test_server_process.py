"""Freed memory is reused for later allocations without system calls."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_FAULTS = """
import resource
from tablegate.gateway.server import server_process

def faults() -> int:
    began = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        held = [bytes(bytearray(1_000_000)) for _ in range(16)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - began

assert server_process.keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's allocator")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    """Sixteen megabytes, twenty times: 80,000 pages if each of them came from the system."""
    told = subprocess.run([sys.executable, "-c", _FAULTS], check=True, capture_output=True, text=True)
    assert int(told.stdout) < 8_000
