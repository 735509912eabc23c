"""Opening and migrating databases."""
