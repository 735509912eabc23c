"""SQL for local transactions and idempotency tokens."""
