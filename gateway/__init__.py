"""The gateway: what a row, a write, a range and a change mean, on one SQL schema."""
