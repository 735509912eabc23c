"""The statements behind the contract say where their rows are."""

from tests.support.statements import listener, statements_say_where  # noqa: F401
