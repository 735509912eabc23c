"""The tests. A package of its own, because some packages (azure-cosmosdb-table) install one of this name."""
