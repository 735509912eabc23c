"""The control plane: tables, indexes, options, split points."""
