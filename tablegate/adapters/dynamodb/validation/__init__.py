"""Checks of a request before its table is looked up."""
