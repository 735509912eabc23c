"""What the engine can be asked for, and single writes."""
