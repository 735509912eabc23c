"""The ends of a transfer behind one interface: cloud services, emulators, tablegate databases and files."""
