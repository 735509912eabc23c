"""Who asks and what they may do: Shared Key, shared access signatures, bearer tokens."""
