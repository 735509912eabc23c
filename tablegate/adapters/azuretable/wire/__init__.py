"""The protocol: addresses, verbs, framing of batches, limits, and the words of errors."""
