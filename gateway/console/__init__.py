"""The console: tables, items, changes and figures in a browser."""
