"""Change streams and their followers."""
