"""Grants of tunnels. A tunnel reads all rows, all changes, or both."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tests.adapters.tablestore.strict_table import NO_PERMISSION, ask, ram, server
from tests.support.strict import FULL, LIMITED, Strict, Told

__all__ = ["server"]


def create(server: Strict, caller: str, kind: int, name: str) -> Told:
    tunnel = tunnel_pb2.Tunnel(table_name="t", tunnel_name=name, tunnel_type=kind)  # type: ignore[arg-type]
    return ask(server, caller, "tunnel/create", tunnel=tunnel)


def reads(server: Strict, tunnel: str) -> bool:
    """True if a limited caller gets the records of a tunnel. No request of a tunnel is answered without the permission."""
    connected = ask(server, LIMITED, "tunnel/connect", tunnel_id=tunnel)
    if connected.code == NO_PERMISSION:
        client = {"tunnel_id": tunnel, "client_id": "x"}
        assert ask(server, LIMITED, "tunnel/heartbeat", **client).code == NO_PERMISSION
        channel = {**client, "channel_id": "x"}
        assert ask(server, LIMITED, "tunnel/readrecords", token="", **channel).code == NO_PERMISSION
        assert ask(server, LIMITED, "tunnel/getcheckpoint", **channel).code == NO_PERMISSION
        return False
    client = {"tunnel_id": tunnel, "client_id": connected.body.client_id}
    for channel in ask(server, LIMITED, "tunnel/heartbeat", **client).body.channels:
        channel_id = {**client, "channel_id": channel.channel_id}
        token = ask(server, LIMITED, "tunnel/getcheckpoint", **channel_id).body.checkpoint
        answer = ask(server, LIMITED, "tunnel/readrecords", token=token, **channel_id)
        assert answer.status == 200, answer
    ask(server, LIMITED, "tunnel/shutdown", **client)
    return True


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([{"scan": ["t"]}], {"rows"}),
        ([{"stream": ["t"]}], {"changes"}),
        ([{"scan": ["t"]}, {"stream": ["t"]}], {"rows", "changes", "both"}),
        ([{"read": ["t"], "query": ["t"], "write": ["t"]}], set()),
        ([{"query": ["t"], "keys": ["a"]}, {"stream": ["t"]}], {"changes"}),
        ([{"scan": ["other"]}, {"stream": ["other"]}], set()),
        ([ram("ConsumeTunnel")], {"rows", "changes", "both"}),
        ([ram("GetRange", "GetStreamRecord")], set()),
    ],
)
def test_a_tunnel_is_read_with_grants_for_its_rows_and_changes(
    server: Strict, grants: list[Any], expected: set[str]
) -> None:
    kinds = {"rows": tunnel_pb2.BaseData, "changes": tunnel_pb2.Stream, "both": tunnel_pb2.BaseAndStream}
    server.grant(LIMITED, *grants)
    found = set()
    for name, kind in kinds.items():
        tunnel = create(server, FULL, kind, name).body.tunnel_id
        if reads(server, tunnel):
            found.add(name)
        ask(server, FULL, "tunnel/delete", table_name="t", tunnel_name=name)
    assert found == expected


def test_a_tunnel_is_created_with_its_own_permission(server: Strict) -> None:
    for grant, is_allowed in (
        (ram("CreateTunnel"), True),
        (ram("ConsumeTunnel"), False),
        ({"define": ["t"]}, True),
    ):
        server.grant(LIMITED, grant)
        told = create(server, LIMITED, tunnel_pb2.Stream, "mine")
        assert (told.status == 200) is is_allowed, told
        if is_allowed:
            ask(server, FULL, "tunnel/delete", table_name="t", tunnel_name="mine")
        else:
            assert told.code == NO_PERMISSION
