"""The data plane: items, batches, pages and transactions."""
