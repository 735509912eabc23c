"""Who may come in: credentials in memory, how they are kept, how their secrets are encrypted at rest."""
