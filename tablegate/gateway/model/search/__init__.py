"""Search indexes: schemas, documents, queries and their evaluation."""
