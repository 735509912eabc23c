"""HTTP as plain values: requests, replies, bodies within bounds, and conversion from and to WSGI and Flask."""
