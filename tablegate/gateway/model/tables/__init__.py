"""Tables, their indexes and change streams, and pages of rows."""
