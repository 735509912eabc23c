"""Conditions, updates and key ranges as closed trees, and their evaluators."""
