"""Contributor insights: the most accessed and the most throttled keys."""
