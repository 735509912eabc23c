"""Error messages of one line, instead of a traceback, for errors that an operator can correct."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from tablegate.gateway.command_line.options import loaded_settings
from tablegate.gateway.configuration.database_urls import with_advice
from tablegate.gateway.configuration.loading import text_of
from tablegate.gateway.configuration.secrets import masked
from tablegate.gateway.configuration.settings import BadSetting


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert errors of the start and of the database to ClickException with a text of one line."""
    from tablegate.gateway.model.errors import GatewayError
    from tablegate.gateway.security.credential_store import BadCredential
    from tablegate.gateway.security.grant_store import BadGrant
    from tablegate.gateway.security.iam_conditions import BadPolicy
    from tablegate.gateway.security.secret_cipher import WrongKey
    from tablegate.gateway.server.file_lock import LockAlreadyHeld
    from tablegate.gateway.server.startup_errors import StartupError
    from tablegate.gateway.store.migrating import NewerDatabase
    from tablegate.gateway.store.sql.databases import DatabaseUnusable, RetryableFailure

    try:
        yield
    except BadSetting as error:
        loaded = loaded_settings()
        sources = {} if loaded is None else loaded.sources
        raise click.ClickException(text_of(error, sources)) from None
    except (
        BadCredential,
        BadGrant,
        BadPolicy,
        WrongKey,
        StartupError,
        DatabaseUnusable,
    ) as error:
        raise click.ClickException(masked(str(error))) from None
    except UnicodeEncodeError:
        # Python reads bytes of the command line that are not UTF-8 as surrogates.
        raise click.ClickException("An argument is not text in UTF-8.") from None
    except LockAlreadyHeld as error:
        raise click.ClickException(
            f"another server (pid {error.pid or 'unknown'}) uses this database. Stop it, or use another database"
        ) from None
    except NewerDatabase as error:
        raise click.ClickException(
            f"the database has schema {error.revision} of a later release of tablegate. Use that release"
        ) from None
    except _sqlalchemy_errors() as error:
        raise click.ClickException(
            masked(f"the database: {with_advice(str(getattr(error, 'orig', None) or error))}")
        ) from None
    except RetryableFailure as error:
        raise click.ClickException(masked(f"the database: {with_advice(str(error))}")) from None
    except GatewayError as error:
        raise click.ClickException(masked(f"the database: {error!r}")) from None


def reason_of(error: OSError) -> str:
    """Return the file and the reason of an error of the operating system."""
    return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error)


def _sqlalchemy_errors() -> tuple[type[Exception], ...]:
    """Return the base of SQLAlchemy's errors, if it is imported. An ordinary start on SQLite does not import it."""
    module = sys.modules.get("sqlalchemy.exc")
    return () if module is None else (module.SQLAlchemyError,)
