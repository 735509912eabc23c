"""The protobuf messages. `table_store.proto` is the project's own, `table_store_pb2.py` is generated from it."""
