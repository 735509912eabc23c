"""Replicas of global tables: tables that hold the same rows, and that all accept writes."""
