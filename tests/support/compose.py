"""Start deploy/compose/compose.yaml in containers, use it, kill and replace its gateways, and remove it.

    python -m tests.support.compose docker compose

The arguments are a command with the options of Docker Compose. Ports 8000, 9090 and 3000 must be free.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import boto3
import requests
from botocore.config import Config

from tests.support.item_writer import ItemWriter, until
from tests.support.running import ROOT
from tests.support.waiting import PATIENCE_S

FILE = ROOT / "deploy" / "compose" / "compose.yaml"
TOKEN = "the-token-of-the-metrics"
SECRETS = {
    "POSTGRES_PASSWORD": "password",
    "TABLEGATE_SECRET_KEY": "sixteen characters",
    "TABLEGATE_METRICS_TOKEN": TOKEN,
    "GRAFANA_PASSWORD": "password",
}
BALANCER, PROMETHEUS = "http://127.0.0.1:8000", "http://127.0.0.1:9090"


class Compose:
    """A project of Docker Compose."""

    def __init__(self, command: list[str]) -> None:
        self._command = [*command, "--project-name", "tablegate-check", "--file", str(FILE)]

    def __call__(self, *words: str) -> str:
        print("compose", *words, flush=True)
        environment = {**os.environ, **SECRETS}
        done = subprocess.run([*self._command, *words], env=environment, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"compose {words[0]}: status {done.returncode}\n{done.stdout}")
        return done.stdout


def _client(secret: str, attempts: int) -> Any:
    session = boto3.Session("CHECK", secret, region_name="us-east-1")
    config = Config(retries={"total_max_attempts": attempts})
    return session.client("dynamodb", endpoint_url=BALANCER, config=config)


def _targets() -> list[str]:
    """Return the addresses of the gateways that Prometheus reads."""
    reply = requests.get(
        f"{PROMETHEUS}/api/v1/query", {"query": 'up{job="tablegate"} == 1'}, timeout=PATIENCE_S
    )
    return sorted(each["metric"]["instance"] for each in reply.json()["data"]["result"])


def use(compose: Compose) -> None:
    """Kill and replace gateways while a client writes, and check that Prometheus reads both of them."""
    added = compose("exec", "-T", "gateway-1", "tablegate", "credentials", "add", "CHECK", "--all")
    secret = added.strip().rpartition("secret=")[2]
    writer = ItemWriter(_client(secret, 10), "killed")
    writer.start()
    try:
        writer.wait_for_more()
        compose("kill", "gateway-1")
        writer.wait_for_more()
        compose("up", "--detach", "--wait", "--no-deps", "gateway-1")
        writer.wait_for_more()
    finally:
        writer.is_stopped = True
    writer.stop()
    until(lambda: _targets() == ["gateway-1:8000", "gateway-2:8000"])
    writer = ItemWriter(_client(secret, 1), "replaced")
    writer.start()
    try:
        for gateway in ("gateway-1", "gateway-2"):
            compose("up", "--detach", "--wait", "--no-deps", "--force-recreate", gateway)
            writer.wait_for_more()
    finally:
        writer.is_stopped = True
    writer.stop()


def main(command: list[str]) -> None:
    """Check the project, and remove it."""
    compose = Compose(command)
    try:
        compose("up", "--detach", "--wait")
        use(compose)
    finally:
        compose("down", "--volumes", "--timeout", "20")


if __name__ == "__main__":
    main(sys.argv[1:])
