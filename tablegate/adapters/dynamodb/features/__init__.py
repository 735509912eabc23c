"""Capabilities of the DynamoDB adapter. A folder holds all of one capability: its operations with their inputs, its rules and
its workers. Common modules import none of it (tests/repository/test_architecture.py).
"""
