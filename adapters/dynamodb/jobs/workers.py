"""Registration of the workers for exports, imports and bulk puts. Used if the settings name an object store."""

from __future__ import annotations

from tablegate.adapters.dynamodb.jobs.bulk_put_worker import BulkPutWorker
from tablegate.adapters.dynamodb.jobs.export_worker import ExportWorker
from tablegate.adapters.dynamodb.jobs.import_worker import ImportWorker
from tablegate.adapters.dynamodb.jobs.job_names import BULK, EXPORT, IMPORT
from tablegate.adapters.dynamodb.object_stores.opening import open_store
from tablegate.gateway.dialect import Gateway


def register(gateway: Gateway) -> None:
    """Register the workers. Raises BadSetting."""
    store = open_store(gateway.settings)
    gateway.engine.register_worker(EXPORT.name, ExportWorker(gateway, store))
    gateway.engine.register_worker(IMPORT.name, ImportWorker(gateway, store))
    gateway.engine.register_worker(BULK.name, BulkPutWorker(gateway, store))
