"""The adapters of the dialects, one folder each: bytes, names, limits, error texts and signatures."""
