"""The tools of `tablegate mcp`. Each is one request to the DynamoDB API of a server.

Keys, items and values are DynamoDB JSON ({"S": "text"}), so every type arrives as it is stored.
"""

from __future__ import annotations

import os
from typing import Any

import orjson
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import ConfigDict
from typing_extensions import TypedDict

from tablegate.gateway import __version__
from tablegate.gateway.observability.audit import MCP_AGENT

_READS = ToolAnnotations(read_only_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
_INSTRUCTIONS = (
    'Tables with the DynamoDB data model. Keys, items and values are DynamoDB JSON, for example {"id": {"S": "1"}}. '
    "Call describe_table first to learn the key of a table."
)
_PAGE_ITEMS = 25
Document = dict[str, Any]


class QueryOptions(TypedDict, total=False):
    """Members of a Query request that most queries do not need."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    IndexName: str
    FilterExpression: str
    ExpressionAttributeNames: dict[str, str]
    Limit: int
    ScanIndexForward: bool
    ExclusiveStartKey: Document


class Tables:
    """The tables of a server, as one key may use them. Each method is a tool, and its docstring is the description."""

    def __init__(self, url: str, region: str, access_id: str, secret: str) -> None:
        self._url = url
        self._signer = SigV4Auth(Credentials(access_id, secret), "dynamodb", region)
        self._session = URLLib3Session(verify=os.environ.get("AWS_CA_BUNDLE", True))

    def list_tables(self, start_after: str | None = None) -> Document:
        """List up to 100 names of tables. `LastEvaluatedTableName` in the answer: call again with it as start_after."""
        return self._call("ListTables", ExclusiveStartTableName=start_after)

    def describe_table(self, table: str) -> Document:
        """Describe a table: its key, its indexes, and the number and size of its items."""
        described: Document = self._call("DescribeTable", TableName=table)["Table"]
        return described

    def get(self, table: str, key: Document) -> Document:
        """Read one item by its whole primary key. The answer has no `Item` if there is none."""
        return self._call("GetItem", TableName=table, Key=key, ConsistentRead=True)

    def query(
        self, table: str, key_condition: str, values: Document, options: QueryOptions | None = None
    ) -> Document:
        """Read items with one partition key, in the order of the sort key.

        key_condition: a KeyConditionExpression, such as "id = :id AND begins_with(#date, :year)". values: the values by
        placeholder, such as {":id": {"S": "1"}}. options: other members of the request, such as Limit (default 25) and
        ExpressionAttributeNames for reserved words. `LastEvaluatedKey` in the answer: call again with it as
        ExclusiveStartKey.
        """
        return self._call(
            "Query",
            TableName=table,
            KeyConditionExpression=key_condition,
            ExpressionAttributeValues=values,
            **{"Limit": _PAGE_ITEMS, **(options or {})},
        )

    def put(self, table: str, item: Document) -> Document:
        """Store an item. It replaces an item with the same primary key."""
        return self._call("PutItem", TableName=table, Item=item)

    def delete(self, table: str, key: Document) -> Document:
        """Delete the item with this primary key. The answer has its `Attributes` if it existed."""
        return self._call("DeleteItem", TableName=table, Key=key, ReturnValues="ALL_OLD")

    def _call(self, operation: str, **members: Any) -> Document:
        """Send a request and return its answer. Raises ToolError: the assistant reads its text."""
        body = orjson.dumps({name: value for name, value in members.items() if value is not None})
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "User-Agent": f"{MCP_AGENT}{__version__}",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        request = AWSRequest("POST", self._url, headers=headers, data=body)
        self._signer.add_auth(request)
        try:
            reply = self._session.send(request.prepare())
            answer = orjson.loads(reply.content)
        except (BotoCoreError, ValueError) as error:
            raise ToolError(f"No DynamoDB API answers at {self._url}: {error}") from None
        if reply.status_code != 200:
            code = str(answer.get("__type", "")).rpartition("#")[2]
            raise ToolError(f"{code}: {answer.get('message') or answer.get('Message') or ''}")
        return dict(answer)


def serve(tables: Tables, writes: bool) -> None:
    """Answer calls on standard input until it ends."""
    server = MCPServer("tablegate", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    for read in (tables.list_tables, tables.describe_table, tables.query, tables.get):
        server.add_tool(read, annotations=_READS)
    if writes:
        for write in (tables.put, tables.delete):
            server.add_tool(write, annotations=_WRITES)
    server.run("stdio")
