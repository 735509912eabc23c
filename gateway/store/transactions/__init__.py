"""Local transactions and idempotency tokens as SQL."""
