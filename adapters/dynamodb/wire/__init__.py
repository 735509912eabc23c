"""The protocol: HTTP, signatures, resource names, limits, calls, and the words of errors."""
