"""One folder a dialect: bytes, names, limits, error texts and signatures; no SQL, no other dialect."""
