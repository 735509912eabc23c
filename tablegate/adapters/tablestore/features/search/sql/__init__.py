"""SELECT by search indexes: the implementation of the socket in features/sql/searches.py."""
