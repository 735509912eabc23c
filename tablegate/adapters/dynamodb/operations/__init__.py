"""The data plane: items, batches, pages, transactions and streams."""
