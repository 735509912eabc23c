"""SELECT by search indexes: what statements ask of them (sql/searches.py)."""
