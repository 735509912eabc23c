"""The services of deploy/compose as processes of this machine: two gateways on PostgreSQL, HAProxy and Prometheus.

They have the environment and the files of deploy/compose. Only addresses and scrape intervals differ.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
import yaml
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.support.dashboard import ALERTS, DEPLOY, PANEL_QUERIES, RARE, filled_in
from tests.support.databases import PostgresServer
from tests.support.item_writer import ItemWriter, until
from tests.support.running import ROOT, Process, free_port
from tests.support.soak import minutes_long
from tests.support.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.soak,
    minutes_long,
    pytest.mark.skipif(
        not (shutil.which("haproxy") and shutil.which("prometheus")), reason="needs haproxy and prometheus"
    ),
]
FILES = DEPLOY / "compose"
GATEWAY: dict[str, Any] = yaml.safe_load((FILES / "compose.yaml").read_text())["x-gateway"]
SECRETS = {
    "TABLEGATE_SECRET_KEY": "sixteen characters",
    "TABLEGATE_METRICS_TOKEN": "the token of the metrics",
}


@dataclass
class Stack:
    """The running services."""

    folder: Path
    environment: dict[str, str]
    ports: tuple[int, int]
    balancer: str
    prometheus: str
    gateways: list[Process]
    secrets: dict[str, str] = field(default_factory=dict)

    def begin(self, number: int) -> Process:
        """Start a gateway."""
        begun = Process(self.folder, "--port", str(self.ports[number]), environment=self.environment)
        self.gateways[number : number + 1] = [begun]
        begun.wait_until_ready()
        return begun

    def command(self, *words: str) -> str:
        """Run a command of tablegate as in a container."""
        environment = {"PYTHONPATH": str(ROOT), **self.environment}
        command = [sys.executable, "-m", "tablegate", *words]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def add_credential(self, access_id: str) -> None:
        """Store a credential that may do everything. A running gateway would take it up within two seconds."""
        added = self.command("credentials", "add", access_id, "--all")
        self.secrets[access_id] = added.strip().rpartition("secret=")[2]

    def client(self, access_id: str, attempts: int) -> Any:
        """Return a client with a stored credential."""
        session = boto3.Session(access_id, self.secrets[access_id], region_name="us-east-1")
        config = Config(retries={"total_max_attempts": attempts})
        return session.client("dynamodb", endpoint_url=self.balancer, config=config)

    def requests_of(self, number: int) -> float:
        """Return the number of requests that a gateway has answered."""
        headers = {"Authorization": f"Bearer {SECRETS['TABLEGATE_METRICS_TOKEN']}"}
        reply = requests.get(
            f"http://127.0.0.1:{self.ports[number]}/metrics", headers=headers, timeout=PATIENCE_S
        )
        found = re.findall(r"^tablegate_requests_total\{.*\} (\S+)$", reply.text, re.MULTILINE)
        return sum(map(float, found))

    def ask(self, path: str, **parameters: str) -> Any:
        """Return what Prometheus answers."""
        return requests.get(f"{self.prometheus}/api/v1/{path}", parameters, timeout=PATIENCE_S).json()["data"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("production")
    environment = {
        name: re.sub(r"\$\{(\w+):[^}]*\}", lambda found: SECRETS.get(found[1], ""), value)
        for name, value in GATEWAY["environment"].items()
    }
    environment["TABLEGATE_DATABASE"] = postgres.empty_database()
    first, second, balancer, prometheus = (free_port() for _ in range(4))
    stack = Stack(
        folder, environment, (first, second), f"http://127.0.0.1:{balancer}",
        f"http://127.0.0.1:{prometheus}", [],
    )  # fmt: skip
    (folder / "token").write_text(SECRETS["TABLEGATE_METRICS_TOKEN"])
    (folder / "alerts.yaml").write_text((DEPLOY / "prometheus" / "alerts.yaml").read_text())
    addresses = {"gateway-1:8000": f"127.0.0.1:{first}", "gateway-2:8000": f"127.0.0.1:{second}"}
    for name, changes in (
        ("haproxy.cfg", {"bind :8000": f"bind 127.0.0.1:{balancer}"}),
        ("prometheus.yml", {"15s": "1s", "/run/secrets/metrics_token": str(folder / "token")}),
    ):
        text = (FILES / name).read_text()
        for old, new in {**addresses, **changes}.items():
            assert old in text
            text = text.replace(old, new)
        (folder / name).write_text(text)
    stack.command("migrate")
    for access_id in ("WRITER", "LIMITED"):
        stack.add_credential(access_id)
    with ExitStack() as opened:
        for number in range(2):
            stack.begin(number)
        for command in (
            ["haproxy", "-W", "-db", "-f", folder / "haproxy.cfg"],
            ["prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "data",
             "--web.listen-address", f"127.0.0.1:{prometheus}"],
        ):  # fmt: skip
            log = opened.enter_context((folder / f"{command[0]}.log").open("w"))
            service = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
            opened.callback(service.wait)
            opened.callback(service.terminate)
        until(lambda: _is_ready(stack.balancer) and _is_ready(stack.prometheus, "/-/ready"))
        yield stack
        for gateway in stack.gateways:
            gateway.kill()


def _is_ready(url: str, path: str = "/readyz") -> bool:
    try:
        return requests.get(f"{url}{path}", timeout=PATIENCE_S).status_code == 200
    except requests.ConnectionError:
        return False


def serves(stack: Stack, number: int) -> None:
    """Wait until a gateway gets requests from the balancer."""
    known = stack.requests_of(number)
    until(lambda: stack.requests_of(number) > known + 20)


def test_a_killed_gateway_costs_no_acknowledged_write(stack: Stack) -> None:
    writer = ItemWriter(stack.client("WRITER", 10), "killed")
    writer.start()
    try:
        serves(stack, 0)
        stack.gateways[0].kill()
        writer.wait_for_more()
        stack.begin(0)
        serves(stack, 0)
    finally:
        writer.is_stopped = True
    writer.stop()


def test_gateways_are_replaced_without_a_failed_request(stack: Stack) -> None:
    """One after the other, as the comment of compose.yaml says. The client does not retry."""
    writer = ItemWriter(stack.client("WRITER", 1), "replaced")
    writer.start()
    try:
        for number in range(2):
            serves(stack, number)
            assert stack.gateways[number].terminate()[0] == 0
            writer.wait_for_more()
            stack.begin(number)
            serves(stack, number)
    finally:
        writer.is_stopped = True
    writer.stop()


def test_prometheus_has_data_for_each_panel_and_evaluates_each_alert(stack: Stack) -> None:
    limited = stack.client("LIMITED", 1)
    stack.command("quotas", "set", "LIMITED", "--write-units", "1")
    writer = ItemWriter(stack.client("WRITER", 10), "panels")

    def use() -> None:
        """Cause reads, writes, refusals and requests above a quota."""
        for client in (writer.client, limited):
            for _ in range(5):
                try:
                    client.put_item(TableName="panels", Item={"k": {"S": "k"}, "x": {"S": "x" * 3000}})
                except ClientError:
                    break
        writer.client.get_item(TableName="panels", Key={"k": {"S": "k"}})
        assert requests.get(f"{stack.balancer}/nobody/panels", timeout=PATIENCE_S).status_code == 403

    def without_data() -> list[str]:
        use()
        return [
            name
            for name, query in PANEL_QUERIES.items()
            if not any(each in query for each in (*RARE, '"5.."'))
            and not stack.ask("query", query=filled_in(query))["result"]
        ]

    until(
        lambda: (
            [each["value"][1] for each in stack.ask("query", query='up{job="tablegate"}')["result"]]
            == ["1", "1"]
        )
    )
    until(lambda: without_data() == [])
    for query in PANEL_QUERIES.values():
        assert stack.ask("query", query=filled_in(query))["resultType"] == "vector"
    [group] = stack.ask("rules")["groups"]
    assert {rule["name"] for rule in group["rules"]} == {rule["alert"] for rule in ALERTS}
    until(lambda: {rule["health"] for rule in stack.ask("rules")["groups"][0]["rules"]} == {"ok"})
