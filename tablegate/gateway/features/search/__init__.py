"""Search indexes of Table Store: schemas, documents, queries, aggregations and their SQL."""
