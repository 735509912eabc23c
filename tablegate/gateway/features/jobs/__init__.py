"""Jobs: exports, imports and other long work, continued by any server process."""
