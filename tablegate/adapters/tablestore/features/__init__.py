"""The capabilities of Table Store, one folder each.

The operations of a capability are imported at the first request for one of them (operation_table.py). No common module
imports a capability, so its folder can be deleted with its lines in operation_table.py.
"""
