"""Recording HTTP traffic, replaying it, and shadowing it to a second service."""
