"""Detection of a request's dialect by its headers and the form of its signature."""

from __future__ import annotations

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.dialects.azuretable import AzureTable
from tablegate.transfer.traffic.dialects.dialect import ProxiedDialect
from tablegate.transfer.traffic.dialects.dynamodb import DynamoDB
from tablegate.transfer.traffic.dialects.tablestore import TableStore

DIALECTS: dict[str, ProxiedDialect] = {each.name: each for each in (DynamoDB(), AzureTable(), TableStore())}
NONE = ""


def dialect_of(request: Request) -> str:
    """Return the dialect's name. NONE for other requests, such as health checks."""
    if any(name.startswith("x-ots-") for name, _ in request.headers):
        return TableStore.name
    authorization = request.header("authorization")
    if request.header("x-amz-target") or authorization.startswith("AWS4"):
        return DynamoDB.name
    if authorization.startswith("SharedKey") or any(name.startswith("x-ms-") for name, _ in request.headers):
        return AzureTable.name
    return AzureTable.name if "sig=" in request.query or request.header("dataserviceversion") else NONE


def refusal(request: Request, status: int, text: str) -> Reply:
    """Return an error of the proxy itself in the format of the request's dialect."""
    dialect = DIALECTS.get(dialect_of(request))
    if dialect is None:
        return Reply(status, [("Content-Type", "text/plain; charset=utf-8")], f"{text}\n".encode())
    return dialect.refusal(request, status, text)
