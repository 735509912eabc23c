"""Exports, imports and bulk puts: the operations that begin jobs and tell of them, and the workers that carry them on."""
