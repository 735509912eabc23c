"""Background work of this dialect, registered with the engine: jobs on objects, delivery to Kinesis."""

from __future__ import annotations

from tablegate.adapters.dynamodb.jobs.bulk_put_worker import BulkPutWorker
from tablegate.adapters.dynamodb.jobs.export_worker import ExportWorker
from tablegate.adapters.dynamodb.jobs.import_worker import ImportWorker
from tablegate.adapters.dynamodb.jobs.job_names import BULK, EXPORT, IMPORT
from tablegate.adapters.dynamodb.object_stores.opening import open_store
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.engine.background.job_runner import JobWorker, add_workers


def register(gateway: Gateway) -> None:
    """Register the work that the settings ask for. Raises BadSetting."""
    if gateway.settings.has_object_store:
        store = open_store(gateway.settings)
        workers: dict[str, JobWorker] = {
            EXPORT.name: ExportWorker(gateway, store),
            IMPORT.name: ImportWorker(gateway, store),
            BULK.name: BulkPutWorker(gateway, store),
        }
        add_workers(gateway.engine.background, workers)
    if gateway.settings.kinesis_endpoint_url:
        _deliver_to_kinesis(gateway)


def _deliver_to_kinesis(gateway: Gateway) -> None:
    """Register delivery of changes to Kinesis. Raises BadSetting if boto3 is not installed."""
    try:
        from tablegate.adapters.dynamodb.kinesis.destinations import KIND
        from tablegate.adapters.dynamodb.kinesis.producer import Producer
    except ModuleNotFoundError:
        raise BadSetting("{} needs boto3: pip install 'tablegate[clouds]'", "kinesis_endpoint_url") from None
    gateway.engine.add_delivery(KIND, Producer(gateway.settings).deliver)
