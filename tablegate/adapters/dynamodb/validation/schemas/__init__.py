"""The inputs of all operations, as data: shapes, constraints and their order."""
