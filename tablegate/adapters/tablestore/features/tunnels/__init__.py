"""The tunnel service: tunnels, their clients, and the records that clients read."""
