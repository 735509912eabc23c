"""Copies, comparisons and replays of tables between services. Only the command line imports this package."""
