"""Tunnels: followers of a table that clients drive, for Table Store."""
