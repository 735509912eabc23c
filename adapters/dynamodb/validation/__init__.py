"""What is checked of a request before any table is looked at."""
