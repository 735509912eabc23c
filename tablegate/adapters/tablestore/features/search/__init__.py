"""Search indexes of Table Store: definitions, queries and searches."""
