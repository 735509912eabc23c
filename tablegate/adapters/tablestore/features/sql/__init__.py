"""SQLQuery: statements of the MySQL dialect on tables, evaluated here and never given to the database."""
