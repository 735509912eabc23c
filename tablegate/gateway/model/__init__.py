"""Values, keys, predicates, writes and commands: pure, without I/O and without a clock."""
