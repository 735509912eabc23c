"""Initial data of a server: credentials, a snapshot and a seed named in the settings.

Each addition is recorded in the audit.
"""

from __future__ import annotations

import contextlib
import time

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialect import BadSeed
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import SNAPSHOTS
from tablegate.gateway.observability import audit
from tablegate.gateway.server.startup_errors import StartupError
from tablegate.gateway.wiring import OpenDatabase, wire


def add_initial_data(settings: Settings, open_database: OpenDatabase) -> None:
    """Add the initial credentials and tables. Raises StartupError, BadSetting, BadCredential."""
    sources = [
        name
        for name, value in (("--from", settings.start_from), ("--seed", settings.seed))
        if value is not None
    ]
    _remove_unfinished_snapshots(open_database)
    if settings.credentials_file is None and not sources:
        return
    with contextlib.ExitStack() as stack:
        if settings.audit:
            from tablegate.gateway.observability.audit_sinks import recording

            try:
                stack.enter_context(recording(settings, open_database.store))
            except OSError as error:
                raise audit_unavailable(settings, error) from None
        if settings.credentials_file is not None:
            open_database.credential_store.add_first(settings.credentials_file)
        if sources:
            _add_tables(settings, open_database)
        for name in sources:
            audit.record_operation(f"serve {name}", (), "done")


def audit_unavailable(settings: Settings, error: OSError) -> StartupError:
    """Return the error for an audit file that cannot be written."""
    return StartupError(f"cannot write the audit {settings.audit}: {error.strerror}")


def _remove_unfinished_snapshots(open_database: OpenDatabase) -> None:
    with open_database.store.read() as session:
        names = open_database.store.catalog.namespaces(session)
    if any(name.startswith(SNAPSHOTS) for name in names):
        from tablegate.gateway.control import snapshots

        snapshots.remove_unfinished(
            open_database.engine, open_database.store.database.shared, time.time_ns() // 1_000_000
        )


def _add_tables(settings: Settings, open_database: OpenDatabase) -> None:
    """Add the tables of the snapshot and of the seed. Raises BadSetting."""
    from tablegate.gateway.control import answers, seeds, snapshots

    dialects = wire(settings, open_database).loaded_dialects()
    try:
        if settings.start_from is not None:
            snapshots.start_from(open_database.engine, settings.start_from)
    except (answers.BadRequest, answers.OperationRejected, GatewayError, OSError) as error:
        raise BadSetting(f"{{}} {settings.start_from}: {error}", "start_from") from None
    try:
        if settings.seed is not None:
            seeds.from_folder(dialects, settings.seed)
    except BadSeed as error:
        raise BadSetting(f"{{}}: {error}", "seed") from None
