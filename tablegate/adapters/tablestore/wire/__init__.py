"""The protocol: signatures, protobuf messages, PlainBuffer, names, limits, and the texts of errors."""
