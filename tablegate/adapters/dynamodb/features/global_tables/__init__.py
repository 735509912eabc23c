"""Global tables: replicas of tables in other regions, and their auto scaling settings."""
