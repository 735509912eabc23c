"""Checks of an installation and their findings, for `tablegate doctor` and the console. A module for each family of checks."""
