"""Tables in databases of tablegate as ends of a transfer."""
