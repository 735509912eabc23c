"""PartiQL: statements in place of operations. Syntax in grammar.lark and parsing.py, meaning in the other files."""
