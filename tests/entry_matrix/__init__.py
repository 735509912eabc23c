"""The parts of the matrix of entries, operations and callers (tests/test_entry_matrix.py): its requests and its servers."""
