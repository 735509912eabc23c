"""The gateway: the semantics of rows, writes, ranges and changes on one SQL schema, independent of dialects."""

__version__ = "1.0.0"
