"""The files of deploy/: every query runs against a live /metrics, every named setting exists, and the tools installed
on this machine check the files.

TABLEGATE_TEST_HELM names a helm that is not on the path.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import requests
import yaml
from click.testing import CliRunner
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.settings import SETTINGS
from tablegate.gateway.observability import prometheus
from tests.support.dashboard import ALERTS, DASHBOARD, DEPLOY, PANEL_QUERIES, PANELS, QUERIES, RARE, filled_in
from tests.support.raw_client import RawClient, Refused
from tests.support.running import ROOT, Process
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE_S

# Labels that a scrape adds to every series.
TARGET = {"job": "tablegate", "instance": "127.0.0.1:8000"}
assert prometheus  # which declares all series
Series = list[tuple[str, dict[str, str]]]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """(name, labels) of what a server's /metrics shows that was used, and misused, a little."""
    folder = tmp_path_factory.mktemp("metrics")
    assert (
        CliRunner().invoke(main, ["migrate", "--database", f"sqlite:///{folder}/tablegate.sqlite"]).exit_code
        == 0
    )
    flags = ["--database", f"sqlite:///{folder}/tablegate.sqlite"]
    assert CliRunner().invoke(main, ["quotas", "set", "anybody", "--write-units", "1", *flags]).exit_code == 0
    server = Process(folder, "--audit", "audit.jsonl")
    server.wait_until_ready()
    try:
        with RawClient(server.url) as client:
            client.create_table("things")
            for _ in range(3):
                try:
                    client.call("PutItem", TableName="things", Item={"p": {"S": "k"}, "x": {"S": "x" * 3000}})
                except Refused:
                    break
            client.call("GetItem", TableName="things", Key={"p": {"S": "k"}})
        assert requests.get(f"{server.url}/nobody/things", timeout=PATIENCE_S).status_code == 403
        assert (
            requests.get(
                f"{server.url}/nobody/things", headers={"x-ms-version": "x"}, timeout=PATIENCE_S
            ).status_code
            >= 400
        )
        exposition = requests.get(f"{server.url}/metrics", timeout=PATIENCE_S).text
    finally:
        server.kill()
    return [
        (sample.name, {**sample.labels, **TARGET})
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    ]


def selectors(node: Any) -> Iterator[Any]:
    """All selectors of series in a query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        if getattr(node, name, None) is not None:
            yield from selectors(getattr(node, name))
    for argument in getattr(node, "args", None) or ():
        yield from selectors(argument)


def groupings(node: Any) -> Iterator[tuple[set[str], set[str]]]:
    """(labels that an aggregation keeps, names of the series in it)."""
    if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
        yield set(node.modifier.labels), {selector.name for selector in selectors(node)}
    for name in ("lhs", "rhs", "expr", "param"):
        if getattr(node, name, None) is not None:
            yield from groupings(getattr(node, name))
    for argument in getattr(node, "args", None) or ():
        yield from groupings(argument)


def parsed(query: str) -> Any:
    return promql_parser.parse(filled_in(query))


def matches(labels: dict[str, str], matcher: Any) -> bool:
    value = labels.get(matcher.name, "")
    match matcher.op:
        case promql_parser.MatchOp.Equal:
            return value == matcher.value
        case promql_parser.MatchOp.NotEqual:
            return value != matcher.value
        case promql_parser.MatchOp.Re:
            return re.fullmatch(matcher.value, value) is not None
    return re.fullmatch(matcher.value, value) is None


def declared_labels(name: str) -> set[str]:
    """Return the declared labels of a series, also if it has no value yet."""
    collector = REGISTRY._names_to_collectors.get(name)
    assert collector is not None, f"nobody has declared {name}"
    return {*getattr(collector, "_labelnames", ()), *(("le",) if name.endswith("_bucket") else ())}


@each_row("query", QUERIES.values())
def test_a_query_finds_its_series(query: str, series: Series) -> None:
    found = list(selectors(parsed(query)))
    assert found
    for selector in found:
        if selector.name == "up":  # Prometheus' own
            continue
        asked = {matcher.name for matcher in selector.matchers.matchers}
        assert asked <= declared_labels(selector.name) | TARGET.keys()
        if selector.name in RARE or any(matcher.value == "5.." for matcher in selector.matchers.matchers):
            continue
        assert any(
            name == selector.name and all(matches(labels, matcher) for matcher in selector.matchers.matchers)
            for name, labels in series
        ), selector.name
    for labels, names in groupings(parsed(query)):
        for name in names:
            assert labels <= declared_labels(name) | TARGET.keys()


def test_rare_series_are_declared() -> None:
    for name in RARE:
        assert declared_labels(name)


def test_panels_have_numbers_and_places_of_their_own() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells
        taken |= cells
    assert all(panel["description"] for panel in PANELS)


def test_every_panel_can_show_one_instance() -> None:
    """Grafana's dashboard-linter asks for it."""
    for name, query in PANEL_QUERIES.items():
        assert query.count("{") == query.count('{job=~"$job",instance=~"$instance"'), name


def test_every_series_is_on_the_dashboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """But the keys of items, which are shown of tables with contributor insights: other tests in this process may have some."""
    monkeypatch.setattr(prometheus, "contributors", ())
    shown = {selector.name for query in QUERIES.values() for selector in selectors(parsed(query))}
    shown |= {re.sub("_(bucket|sum|count|total)$", "", name) for name in shown}
    ours = {family.name for family in REGISTRY.collect() if family.name.startswith("tablegate_")}
    assert ours <= shown


def test_every_alert_is_explained() -> None:
    """docs/operate/monitor.md explains each alert. A rule has a severity and names the affected object."""
    explained = set(
        re.findall(r"^\| (Tablegate\w+) \|", (ROOT / "docs/operate/monitor.md").read_text(), re.MULTILINE)
    )
    assert {rule["alert"] for rule in ALERTS} == explained
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert "$" in rule["annotations"]["summary"] or rule["alert"] == "TablegateDown"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on this machine")
def test_promtool_accepts_the_files_of_prometheus(tmp_path: Path) -> None:
    """`check config` also checks the rules that the file names."""
    (tmp_path / "token").touch()
    shutil.copy(DEPLOY / "prometheus" / "alerts.yaml", tmp_path)
    text = (DEPLOY / "compose" / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/metrics_token", "token"))
    done = subprocess.run(
        ["promtool", "check", "config", "--lint-fatal", tmp_path / "prometheus.yml"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


FILES = sorted(str(path.relative_to(ROOT)) for path in DEPLOY.rglob("*") if path.is_file())


@each_row("path", [*FILES, "compose.yaml"])
def test_settings_that_are_named_exist(path: str) -> None:
    for name in re.findall(r"\bTABLEGATE_([A-Z_]+[A-Z])\b", (ROOT / path).read_text()):
        assert name.lower() in SETTINGS, name


# systemd


UNIT = DEPLOY / "systemd" / "tablegate.service"
systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")


@systemd
def test_the_unit_can_be_read(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/tablegate/bin/tablegate", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")


@systemd
def test_the_unit_lets_the_server_do_little() -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(UNIT)],
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.splitlines()[-1:]


@pytest.mark.extended
def test_the_unit_says_how_to_add_the_first_key(tmp_path: Path) -> None:
    """The command of the comment, with the paths of this test, adds a key that the unit's server can decrypt."""
    text = UNIT.read_text()
    shown = re.search(r"#   (TABLEGATE_DATABASE=.*\n#.*)", text)
    assert shown is not None
    for setting in (
        "TABLEGATE_DATABASE=sqlite:////var/lib/tablegate/tablegate.sqlite",
        "LoadCredential=secret.key:",
    ):
        assert setting in text.partition("[Service]")[2]
    (tmp_path / "secret.key").write_text("a key that is long enough\n")
    command = re.sub(r"\\\n#", "", shown[1]).replace("/var/lib/tablegate", str(tmp_path))
    command = command.replace("/etc/tablegate", str(tmp_path))
    command = command.replace("/opt/tablegate/bin/tablegate", f"{shlex.quote(sys.executable)} -m tablegate")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
    server = Process(
        tmp_path,
        "--auth",
        "strict",
        "--secret-key-file",
        str(tmp_path / "secret.key"),
        "--credentials-period",
        "0.1",
    )
    server.wait_until_ready()
    done = subprocess.run(
        command, shell=True, cwd=tmp_path.parent, env={**clean, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    scheme, access_id, secret = done.stdout.strip().split("\t")
    assert (scheme, access_id) == ("aws", "KEY")
    assert secret.startswith("secret=")
    assert server.terminate()[0] == 0
    again = Process(tmp_path, "--auth", "strict", "--secret-key-file", str(tmp_path / "secret.key"))
    again.wait_until_ready()
    assert again.terminate()[0] == 0


# Containers


def test_pods_get_no_variables_of_services() -> None:
    """A Service named tablegate would give them TABLEGATE_PORT=tcp://..."""
    for name in ("deployment", "migrate"):
        text = (DEPLOY / "helm" / "tablegate" / "templates" / f"{name}.yaml").read_text()
        assert re.search(r"^      enableServiceLinks: false$", text, re.MULTILINE)


def test_each_profile_of_compose_asks_only_for_its_own_secrets() -> None:
    """Compose checks the variables of all services, also of those of other profiles."""
    text = (ROOT / "compose.yaml").read_text()
    assert {*re.findall(r"\$\{(\w+):\?", text)} == {"TABLEGATE_SECRET_KEY"}
    services = yaml.safe_load(text)["services"]
    # The image of PostgreSQL refuses an empty password.
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == "${POSTGRES_PASSWORD:-}"


def test_the_commands_in_the_comment_of_compose_add_a_key_that_may_do_something(tmp_path: Path) -> None:
    text = (ROOT / "compose.yaml").read_text()
    commands = re.findall(r"--profile (\w+) exec (\S+) tablegate (.*)$", text, re.MULTILINE)
    assert [(profile, service) for profile, service, _ in commands] == [
        ("postgres", "gateway"), ("sqlite", "gateway-sqlite"),
    ]  # fmt: skip
    flags = ["--database", f"sqlite:///{tmp_path}/x.sqlite"]
    assert CliRunner().invoke(main, ["migrate", *flags]).exit_code == 0
    for number, (profile, service, words) in enumerate(commands):
        assert profile in yaml.safe_load(text)["services"][service]["profiles"]
        assert words.endswith("--all")
        added = CliRunner().invoke(main, [*words.replace("MYKEY", f"KEY{number}").split(), *flags])
        assert added.exit_code == 0, added.output
    assert CliRunner().invoke(main, ["grants", "list", *flags]).stdout.count("\tall") == 2


def test_the_working_folder_of_the_image_is_its_volume() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^WORKDIR (.*)$", text, re.MULTILINE) == re.findall(
        r"^VOLUME (.*)$", text, re.MULTILINE
    )


def test_the_image_is_of_no_architecture_and_of_no_root() -> None:
    """`make image` builds and runs it."""
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["python:3.13-slim"] * 2
    assert not re.search(r"amd64|x86|arm64|aarch64|--platform", text)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["1000"]
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)
    assert re.search(r"^LABEL org\.opencontainers\.image\.title=", text, re.MULTILINE)


PRODUCTION = DEPLOY / "compose"
SERVICES: dict[str, Any] = yaml.safe_load((PRODUCTION / "compose.yaml").read_text())["services"]


def test_files_that_compose_mounts_exist() -> None:
    mounted = [volume.split(":")[0] for each in SERVICES.values() for volume in each.get("volumes", ())]
    files = [path for path in mounted if path.startswith(".")]
    assert len(files) == 6
    assert [path for path in files if not (PRODUCTION / path).is_file()] == []


def test_the_balancer_and_prometheus_know_each_gateway() -> None:
    gateways = {f"{name}:8000" for name in SERVICES if name.startswith("gateway-")}
    assert len(gateways) == 2
    balanced = re.findall(r"^    server \S+ (\S+)$", (PRODUCTION / "haproxy.cfg").read_text(), re.MULTILINE)
    assert {*balanced} == gateways
    prometheus_file = yaml.safe_load((PRODUCTION / "prometheus.yml").read_text())
    [job] = prometheus_file["scrape_configs"]
    assert job["job_name"] == TARGET["job"]
    assert {*job["static_configs"][0]["targets"]} == gateways
    alerts = [volume for volume in SERVICES["prometheus"]["volumes"] if "alerts" in volume]
    assert alerts == [f"../prometheus/alerts.yaml:/etc/prometheus/{prometheus_file['rule_files'][0]}:ro"]


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not on this machine")
def test_haproxy_accepts_its_file() -> None:
    done = subprocess.run(
        ["haproxy", "-c", "-f", str(PRODUCTION / "haproxy.cfg")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# Helm


CHART = DEPLOY / "helm" / "tablegate"
HELM = os.environ.get("TABLEGATE_TEST_HELM") or shutil.which("helm")
helm = pytest.mark.skipif(HELM is None, reason="helm is not on this machine (TABLEGATE_TEST_HELM names one)")
SAID = ("--set", "database=postgresql://user:password@host/db", "--set", "secretKey=sixteen characters")


def rendered(*flags: str, code: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(HELM), "template", "try", str(CHART), "--kube-version", "1.30.0", *flags],
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode == 0) is (code == 0), done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [document for document in documents if document["kind"] == kind]
    return found


@helm
def test_the_chart_is_in_order() -> None:
    done = subprocess.run(
        [str(HELM), "lint", "--strict", str(CHART), *SAID], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


@helm
def test_the_chart_requires_a_database_and_a_secret() -> None:
    rendered(code=1)
    rendered("--set", "database=postgresql://h/d", code=1)
    rendered("--set", "existingSecret=mine")


@helm
def test_pods_are_replaced_without_loss_and_run_without_rights() -> None:
    documents = rendered(*SAID)
    deployment = of_kind(documents, "Deployment")["spec"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["runAsNonRoot"] is True
    environment = {entry["name"]: entry for entry in container["env"]}
    assert {name.removeprefix("TABLEGATE_").lower() for name in environment} <= SETTINGS.keys()
    # A pod's description contains no secret.
    assert "password" not in json.dumps(of_kind(documents, "Deployment"))
    assert "password" not in json.dumps(of_kind(documents, "Job"))
    # The pod serves until no new requests arrive, and then has time for the current ones.
    sleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    stop = int(environment["TABLEGATE_STOP_SECONDS"]["value"])
    assert pod["terminationGracePeriodSeconds"] > sleep + stop
    assert of_kind(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    selected = of_kind(documents, "Service")["spec"]["selector"]
    assert selected.items() <= deployment["template"]["metadata"]["labels"].items()


@helm
def test_the_migration_comes_first() -> None:
    documents = rendered(*SAID)
    job, secret = of_kind(documents, "Job"), of_kind(documents, "Secret")
    for document in (job, secret):
        assert document["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    weights = [int(document["metadata"]["annotations"]["helm.sh/hook-weight"]) for document in (secret, job)]
    assert weights == sorted(weights)
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["migrate"]
    # The service does not send requests to it.
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert not of_kind(documents, "Service")["spec"]["selector"].items() <= labels.items()


@helm
def test_optional_parts_of_the_chart_can_be_switched_on() -> None:
    documents = rendered(*SAID, "--set", "ingress.enabled=true,ingress.host=db.example.com,serviceMonitor.enabled=true",
                         "--set", "settings.AUDIT=-", "--set", "podAnnotations.team=data", "--set", "migrate.enabled=false",
                         "--set", "nodeSelector.disk=fast")  # fmt: skip
    assert of_kind(documents, "Ingress")["spec"]["rules"][0]["host"] == "db.example.com"
    assert of_kind(documents, "ServiceMonitor")["spec"]["endpoints"][0]["path"] == "/metrics"
    template = of_kind(documents, "Deployment")["spec"]["template"]
    assert template["metadata"]["annotations"]["team"] == "data"
    assert template["spec"]["nodeSelector"] == {"disk": "fast"}
    assert {"name": "TABLEGATE_AUDIT", "value": "-"} in template["spec"]["containers"][0]["env"]
    assert not [document for document in documents if document["kind"] == "Job"]
