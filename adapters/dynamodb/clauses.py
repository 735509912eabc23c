"""The clauses of a request - conditions, filters, projections, updates - from either of their spellings.

A request spells them as expressions or in the legacy form, never both (shapes.py sees to it). Both become the same trees
(gateway/model). What can be wrong without a table is found when the clauses are made; what needs the key schema (key
attributes must not be updated or filtered on) when a handler asks for the tree.
"""

from __future__ import annotations
