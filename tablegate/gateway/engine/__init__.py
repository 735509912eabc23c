"""The meaning of commands. Only this package opens transactions."""
