"""Copies: jobs that can be resumed, segments read in parallel, changes that are followed."""
