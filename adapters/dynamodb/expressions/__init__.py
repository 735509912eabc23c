"""Expressions and the parameters from before them: text or JSON to predicates, actions and ranges."""
