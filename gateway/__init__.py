"""The gateway: what a row, a write, a range and a change mean, on one SQL schema."""

__version__ = "0.1.0"
