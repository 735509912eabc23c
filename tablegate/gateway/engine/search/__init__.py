"""Search indexes: definitions, maintenance and searches."""
