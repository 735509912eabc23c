"""What each operation takes, as data: shapes, constraints and their order."""
