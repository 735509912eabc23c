"""SQL for rows, index entries and change streams. The only package that imports SQLAlchemy."""
