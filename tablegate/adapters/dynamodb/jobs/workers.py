"""The workers of exports, imports and bulk puts, registered with the engine."""

from __future__ import annotations

from tablegate.adapters.dynamodb.jobs.bulk_put_worker import BulkPutWorker
from tablegate.adapters.dynamodb.jobs.export_worker import ExportWorker
from tablegate.adapters.dynamodb.jobs.import_worker import ImportWorker
from tablegate.adapters.dynamodb.jobs.job_names import BULK, EXPORT, IMPORT
from tablegate.adapters.dynamodb.object_stores.opening import open_store
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.features.jobs.job_runner import JobWorker, add_workers

# Workers


def register(gateway: Gateway) -> None:
    """Register the workers. Raises BadSetting."""
    store = open_store(gateway.settings)
    workers: dict[str, JobWorker] = {
        EXPORT.name: ExportWorker(gateway, store),
        IMPORT.name: ImportWorker(gateway, store),
        BULK.name: BulkPutWorker(gateway, store),
    }
    add_workers(gateway.engine.background, workers)
