"""Tables, their streams, backups and jobs, and pages of rows."""
