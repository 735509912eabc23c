"""SQLQuery: statements of the MySQL dialect on tables, evaluated here and never given to the database.

A SELECT passes these steps:

1. parsing.py: sqlglot parses it within bounds of length and depth.
2. sources.py finds the tables, indexes and subqueries of the FROM, and accesses.py the range of keys that is read. If a
   search index finds the rows (`SearchRows`), the capability `search` makes its query. searches.py says what statements
   ask of it.
3. accesses.py reads the pages, and selecting.py joins them. The WHERE is evaluated on every row, because an access may find
   too many.
4. expressions.py compiles each expression to a function of a row, and result_rows.py groups, sorts and selects.

work.py counts all of it against the limits of the service. A mapping, which gives a table its columns in SQL, is a
property of the table.
"""
