"""The web console: tables, rows, changes and metrics in a browser."""
