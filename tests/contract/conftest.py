"""The check that the statements of the contract tests name the slot of their rows."""

from tests.support.statements import listener, statements_say_where  # noqa: F401
