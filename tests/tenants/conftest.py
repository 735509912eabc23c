"""Two tenants of one server in `strict` with separate namespaces. Each knows all identifiers of the other, but not the
secrets.

`tenants.victim` has tables in all three dialects. `tenants.thief` has each identifier in them. The victim's data is
unchanged after every test (`untouched`). For the victim's identifiers, the thief must get word for word the answers for
absent identifiers (`same_as_of_nobody`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import boto3
import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient
from botocore.exceptions import ClientError

from tablegate.adapters.tablestore.wire.auth import Caller, reply_signature
from tablegate.adapters.tablestore.wire.plainbuffer import Bound
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import ANY_PLACE, Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.wiring import connect, open_store
from tests.adapters.tablestore.client import rows_of, signed
from tests.support.live_dynamodb import ONCE, Index, Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start

REGION = "eu-central-1"
SETTINGS = {"auth": "strict", "namespaces": "separate", "secret_key": "what encrypts the tenants' secrets"}
ACCOUNTS = {"victim": "111111111111", "thief": "222222222222"}
ABSENT = "absent"
"""The name that nothing has, where the victim's is `MUSIC`."""
MUSIC = "secret"


def secret_of(owner: str) -> str:
    return f"the secret of {owner}"


def azure_key(account: str) -> str:
    return base64.b64encode(hashlib.sha256(account.encode()).digest()).decode()


# The Azure account and the Table Store instance of a tenant have one name, and so have their access ids.
CREDENTIALS = [
    *(Credential(Scheme.AWS, name, (secret_of(name),), account) for name, account in ACCOUNTS.items()),
    *(Credential(Scheme.AZURE, name, (azure_key(name), azure_key(name + "2"))) for name in ACCOUNTS),
    *(Credential(Scheme.TABLESTORE, name, (secret_of(name),), name) for name in ACCOUNTS),
    Credential(Scheme.AWS, "unsaid", (secret_of("unsaid"),)),
    Credential(Scheme.TABLESTORE, "unsaid", (secret_of("unsaid"),)),
    Credential(Scheme.TABLESTORE, "steward", (secret_of("steward"),), ANY_PLACE),
]


class Instance(LiveTableStore):
    """Table Store as a key sees an instance, which need not be its own."""

    def __init__(self, url: str, access_id: str, instance: str, secret: str = "") -> None:
        super().__init__(url)
        self.access_id, self.instance, self.secret = access_id, instance, secret or secret_of(access_id)

    def post(self, operation: str, body: bytes, **headers: str) -> Reply:
        named = {"x_ots_accesskeyid": self.access_id, "x_ots_instancename": self.instance, **headers}
        return self.handle(
            Request(
                "POST", f"/{operation}", signed(operation, body, self.clock.ms, self.secret, **named), body
            )
        )

    def check_signature(self, given: str, operation: str, headers: list[tuple[str, str]]) -> None:
        caller = Caller(self.access_id, self.instance, "", self.secret.encode())
        own = [(name, value) for name, value in headers if name.startswith("x-ots-")]
        assert given == reply_signature(caller, operation, own)


@lru_cache
def _boto(url: str, service: str, access_id: str, region: str) -> Any:
    """Return a boto3 client. It is cached, because its creation takes longer than the requests."""
    return boto3.client(
        service,
        region,
        endpoint_url=url,
        config=ONCE,
        aws_access_key_id=access_id,
        aws_secret_access_key=secret_of(access_id),
    )


@dataclass(frozen=True)
class Tenant:
    """One of the two, by its three clients."""

    url: str
    name: str

    @property
    def account(self) -> str:
        return ACCOUNTS[self.name]

    def dynamodb(self, region: str = REGION, streams: bool = False, access_id: str = "") -> Any:
        return _boto(self.url, "dynamodbstreams" if streams else "dynamodb", access_id or self.name, region)

    @property
    def azure(self) -> TableServiceClient:
        key = AzureNamedKeyCredential(self.name, azure_key(self.name))
        return TableServiceClient(f"{self.url}/{self.name}", credential=key, retry_total=0)

    def tablestore(self, instance: str = "", access_id: str = "") -> Instance:
        return Instance(self.url, access_id or self.name, instance or self.name)

    def arn(self, name: str = MUSIC) -> str:
        return f"arn:aws:dynamodb:{REGION}:{self.account}:table/{name}"


@dataclass
class Tenants:
    server: Running
    victim: Tenant
    thief: Tenant
    of_victim: dict[str, Any]
    """The data of the victim."""


@pytest.fixture(scope="module")
def tenants(shared_database_url: str) -> Iterator[Tenants]:
    settings = load({"database": shared_database_url, **SETTINGS}, {})
    opened = open_store(settings, connect(settings))
    for credential in CREDENTIALS:
        opened.credential_store.add(credential, [ALL])
    opened.close()
    server = start(shared_database_url, **SETTINGS)
    try:
        victim = Tenant(server.url, "victim")
        _furnish(victim)
        yield Tenants(server, victim, Tenant(server.url, "thief"), fingerprint(victim))
    finally:
        server.stop()


def _furnish(victim: Tenant) -> None:
    """Create the victim's data: a table of five rows in each dialect, with an index, a stream, tags, policies."""
    made_by(victim).create(
        "pk:S",
        "sk:S",
        name=MUSIC,
        indexes=[Index("byAlbum", "album:S")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "owner", "Value": "victim"}],
    )
    dynamodb = victim.dynamodb()
    for number in range(5):
        item = {"pk": {"S": "p"}, "sk": {"S": f"s{number}"}, "album": {"S": "a"}}
        dynamodb.put_item(TableName=MUSIC, Item=item)
    people = victim.azure.create_table(MUSIC)
    for number in range(5):
        people.create_entity({"PartitionKey": "p", "RowKey": f"s{number}", "album": "a"})
    people.set_table_access_policy({"readers": None})
    rows = victim.tablestore()
    defined = [messages.DefinedColumnSchema(name="album", type=messages.DCT_STRING)]
    spec = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    rows.create(MUSIC, ("pk", messages.STRING), ("sk", messages.STRING), defined=defined, stream_spec=spec)
    meta = messages.IndexMeta(
        name="byAlbum",
        primary_key=["album"],
        index_type=messages.IT_GLOBAL_INDEX,
        index_update_mode=messages.IUM_ASYNC_INDEX,
    )
    rows.call("CreateIndex", main_table_name=MUSIC, index_meta=meta)
    for number in range(5):
        rows.put({"pk": "p", "sk": f"s{number}"}, {"album": "a"}, table=MUSIC)


@lru_cache
def made_by(tenant: Tenant) -> Live:
    """Return the client that creates tables for a tenant."""
    return Live(tenant.url, credentials=(tenant.name, secret_of(tenant.name)))


def whole_range(instance: Instance, table: str, **members: Any) -> Any:
    low, high = ({"pk": bound, "sk": bound} for bound in (Bound.INF_MIN, Bound.INF_MAX))
    return instance.range(low, high, table=table, **members)


def fingerprint(victim: Tenant) -> dict[str, Any]:
    """All that a thief could have spoilt."""
    dynamodb, streams, azure, tablestore = (
        victim.dynamodb(), victim.dynamodb(streams=True), victim.azure, victim.tablestore(),
    )  # fmt: skip
    table = dynamodb.describe_table(TableName=MUSIC)["Table"]
    people = azure.get_table_client(MUSIC)
    described = tablestore.call("DescribeTable", table_name=MUSIC)
    return {
        "tables": [
            dynamodb.list_tables()["TableNames"],
            [each.name for each in azure.list_tables()],
            list(tablestore.call("ListTable").table_names),
        ],
        "dynamodb": [
            {name: value for name, value in table.items() if name not in ("ItemCount", "TableSizeBytes")},
            dynamodb.scan(TableName=MUSIC)["Items"],
            dynamodb.list_tags_of_resource(ResourceArn=victim.arn())["Tags"],
            dynamodb.describe_time_to_live(TableName=MUSIC)["TimeToLiveDescription"],
            streams.list_streams()["Streams"],
        ],
        "azure": [
            [dict(each, etag=each.metadata["etag"]) for each in people.list_entities()],
            sorted(people.get_table_access_policy()),
            str(azure.get_service_properties()),
        ],
        "tablestore": [
            rows_of(whole_range(tablestore, MUSIC)),
            [described.table_meta, described.table_options, described.index_metas, described.stream_details],
        ],
    }


@pytest.fixture(autouse=True)
def untouched(tenants: Tenants) -> Iterator[None]:
    """After every test the victim has what it had before."""
    yield
    assert fingerprint(tenants.victim) == tenants.of_victim


def told(call: Callable[[], Any]) -> str:
    """Return the result of a DynamoDB call: an error's code and text, or an answer."""
    try:
        answer = dict(call())
    except ClientError as error:
        return f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')}"
    answer.pop("ResponseMetadata", None)
    return json.dumps(answer, default=str, sort_keys=True)


def same_as_of_nobody(ask: Callable[[str], str], name: str = MUSIC) -> str:
    """Return the answer for the victim's name. Asserts that an absent name gets the same answer."""
    of_victim, of_nobody = ask(name), ask(ABSENT)
    assert of_victim.replace(name, "<name>") == of_nobody.replace(ABSENT, "<name>")
    return of_victim
