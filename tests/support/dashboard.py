"""The queries of the Grafana dashboard and of the alert rules in deploy/."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.support.running import ROOT

DEPLOY = ROOT / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "tablegate.json").read_text())
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PANEL_QUERIES = {
    f"panel {panel['title']} {target['refId']}": target["expr"]
    for panel in PANELS
    for target in panel["targets"]
}
QUERIES = {**PANEL_QUERIES, **{rule["alert"]: rule["expr"] for rule in ALERTS}}
# Series that exist only with replicas, with Citus, with TLS, or with long background work.
RARE = {"tablegate_node_up", "tablegate_node_stuck_transactions", "tablegate_replica_lag_seconds",
        "tablegate_replica_used", "tablegate_background_rows_left", "tablegate_background_rows_total",
        "tablegate_background_seconds_total", "tablegate_follower_lag_seconds", "tablegate_kinesis_records_total",
        "tablegate_certificate_expiry_timestamp_seconds"}  # fmt: skip


def filled_in(query: str) -> str:
    """Replace Grafana's own variables, as Grafana does."""
    return query.replace("$__rate_interval", "5m").replace("$job", ".+").replace("$instance", ".+")
