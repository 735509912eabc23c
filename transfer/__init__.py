"""Between clouds: what moves, compares and replays tables of other services. Only the command line imports it."""
