"""The wire protocol: HTTP, signatures, resource names, limits, and error texts."""
