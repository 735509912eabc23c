"""Values, keys, predicates and writes: pure, without I/O and without a clock."""
