"""SQL of search indexes: definitions, documents and terms."""
