"""Query Entities: filters, pages and continuation tokens."""
