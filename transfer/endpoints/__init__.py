"""The ends of a transfer: clouds, emulators, databases of tablegate, and files, all behind one protocol."""
