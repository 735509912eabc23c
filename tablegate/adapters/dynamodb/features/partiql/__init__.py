"""PartiQL statements: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""
