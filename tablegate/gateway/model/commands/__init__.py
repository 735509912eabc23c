"""The commands of the engine, and single writes."""
