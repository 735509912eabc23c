"""Replicas: tables with the same rows as others."""
