"""What an operator can mend is told in one line, not by a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from tablegate.gateway.configuration.settings import BadSetting


@contextlib.contextmanager
def told_in_one_line() -> Iterator[None]:
    """Within it, what can go wrong before the first request, and what a database refuses, raises ClickException with one line."""
    from tablegate.gateway.model.errors import GatewayError
    from tablegate.gateway.security.credential_store import BadCredential
    from tablegate.gateway.security.grant_store import BadGrant
    from tablegate.gateway.security.policies.errors import BadPolicy
    from tablegate.gateway.security.secret_cipher import WrongKey
    from tablegate.gateway.server.file_lock import LockAlreadyHeld
    from tablegate.gateway.server.startup_errors import StartupError
    from tablegate.gateway.store.opening.migrating import NewerDatabase
    from tablegate.gateway.store.sql.databases import DatabaseUnusable, RetryableFailure

    try:
        yield
    except (
        BadSetting,
        BadCredential,
        BadGrant,
        BadPolicy,
        WrongKey,
        StartupError,
        DatabaseUnusable,
    ) as error:
        raise click.ClickException(str(error)) from None
    except LockAlreadyHeld as error:
        raise click.ClickException(
            f"another server (pid {error.pid or 'unknown'}) has this database"
        ) from None
    except NewerDatabase as error:
        raise click.ClickException(
            f"the database is of a later release of tablegate (its schema is {error.revision}): use that one"
        ) from None
    except _sqlalchemy_errors() as error:
        raise click.ClickException(f"the database: {getattr(error, 'orig', None) or error}") from None
    except RetryableFailure as error:
        raise click.ClickException(f"the database: {error}") from None
    except GatewayError as error:
        raise click.ClickException(f"the database: {error!r}") from None


def _sqlalchemy_errors() -> tuple[type[Exception], ...]:
    """What SQLAlchemy raises, if anybody has needed it: an ordinary start on SQLite does not import it."""
    module = sys.modules.get("sqlalchemy.exc")
    return () if module is None else (module.SQLAlchemyError,)
