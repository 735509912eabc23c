"""The protocol: signatures, protobuf messages, PlainBuffer, names, limits, and the words of errors."""
