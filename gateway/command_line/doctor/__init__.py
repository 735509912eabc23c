"""`tablegate doctor`: what is right and what is wrong with an installation. A module for each family of checks."""
