"""The wire protocol: HTTP, signatures, resource names, limits, calls, and error texts."""
