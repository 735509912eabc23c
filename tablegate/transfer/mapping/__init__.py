"""The mapping of tables and rows from one service to another, shared by lint, copy and verify."""
