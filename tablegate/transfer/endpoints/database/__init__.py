"""Tables in tablegate databases as endpoints."""
