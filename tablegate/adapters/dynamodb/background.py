"""Background work of this dialect, registered with the engine: jobs on objects, delivery to Kinesis.

The modules of a work are imported if the settings ask for it.
"""

from __future__ import annotations

from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialect import Gateway

# Background work


def register(gateway: Gateway) -> None:
    """Register the work that the settings ask for. Raises BadSetting."""
    if gateway.settings.has_object_store:
        from tablegate.adapters.dynamodb.jobs import workers

        workers.register(gateway)
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
