"""What commands mean; the only place that opens transactions."""
