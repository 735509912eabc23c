"""What becomes of a row of one service in another: one pure function for lint, copy and verify alike."""
