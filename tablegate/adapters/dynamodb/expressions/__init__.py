"""Expressions and their legacy equivalents: text or JSON to predicates, actions and ranges."""
