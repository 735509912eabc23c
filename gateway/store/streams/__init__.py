"""Streams and their followers as SQL."""
