"""Screenshots of the console's pages, at the widths of a desktop and a phone, light and dark (`make screenshots`).

The server is started here, with a few tables and the metrics of a day. All pictures go to build/screenshots. Those that README
and docs show go to docs/images, too.
"""

from __future__ import annotations

import base64
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.console.metric_pages import BOUNDS, bucket
from tablegate.gateway.features.jobs.job_commands import StartJob
from tablegate.gateway.observability import audit, metrics
from tablegate.gateway.observability.metrics import DAY_S, FINE_S, Counter, MetricHistory
from tablegate.gateway.security.grant_store import WrittenGrant
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect
from tests.adapters.tablestore.search_messages import schema
from tests.support.browser import SCHEMES, SIZES, appear_as, chromium
from tests.support.capabilities import INSTALLED
from tests.support.live_dynamodb import Index, Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
EVERYTHING, PUBLISHED = ROOT / "build/screenshots", ROOT / "docs/images"
_ORDERS = "namespace=shared&name=orders"
_LONG_NAME = "eu-central-1.production.PreferencesOfSubscriptionsByDeviceAndCustomer"
PAGES = {
    "tables": "/",
    "rows": "/rows?{orders}&attribute=state&comparison=%3D&value=paid",
    "rows-of-index": "/rows?{orders}&index=by-state&key0=sent&order=desc",
    "rows-as-json": "/rows?{orders}&as=dynamodb",
    "rows-none": "/rows?{orders}&key0=nobody",
    "rows-empty": "/rows?namespace=shared&name={long_name}",
    "row": "/row?{orders}&at={first}",
    "row-new": "/row/new?{orders}",
    "row-edit": "/row/edit?{orders}&at={first}",
    "row-edit-json": "/row/edit?{orders}&at={first}&json=1",
    "rows-delete": "/rows/bulk?{orders}&change=delete&attribute=state&comparison=%3D&value=open",
    "rows-change": "/rows/bulk?{orders}&change=set&attribute=state&comparison=%3D&value=open",
    "difference": "/difference?{orders}&at={first}&at={second}",
    "statement": "/statement?{orders}&statement=SELECT+*+FROM+%22orders%22+WHERE+customer%3D%27ada%27",
    "table": "/table?{orders}",
    "changes": "/changes?{orders}",
    "changes-none": "/changes?namespace=shared&name={long_name}",
    "jobs": "/jobs",
    "grants": "/grants",
    "rights": "/rights?{orders}&key=aws%2Fapp",
    "credentials": "/credentials",
    "quotas": "/quotas",
    "audit": "/audit",
    "health": "/health",
    "metrics": "/metrics?range=24h",
    "settings": "/settings?{orders}",
    "settings-table-store": "/settings?{orders}&dialect=tablestore",
    "table-new": "/tables/new",
    "table-new-table-store": "/tables/new?dialect=tablestore",
    "backups": "/backups",
    "transfer": "/transfer?{orders}",
    "sign-in": "/sign-in",
    "not-found": "/nothing",
}
"""Name -> path below the console.

`{orders}`: the fields of a table. `{first}`, `{second}`: the places of two of its rows. `{long_name}`: a table without rows.
"""
if "search" in INSTALLED:
    PAGES["search"] = (
        "/search?namespace=shared&name=customers&index=search&field0=name&comparison0=is+like&value0=*a*&sort=since"
    )
SHOWN = ("rows", "metrics")
"""The pages whose pictures are in docs/images."""
GRANTS = {
    "aws/reports": {"read": ["orders", "customers"], "query": ["orders"]},
    "role/shop": {"write": ["orders"], "read": ["orders"]},
}
_TOKEN = "the token of the administrator"
_LONGEST = 3
"""Maximum length of a picture, in screens."""
_NAMES = ("Ada", "Ben", "Chen", "Dalia", "Emre", "Fatou", "Greta", "Hugo", "Ines", "Jun")


def main() -> None:
    """Make the screenshots of all pages."""
    EVERYTHING.mkdir(parents=True, exist_ok=True)
    with seeded_server() as running, chromium() as browser:
        paths = paths_of(running, browser)
        for size in SIZES:
            for scheme in SCHEMES:
                appear_as(browser, size, scheme)
                for name, path in paths.items():
                    browser.get(f"{running.url}/_tablegate/console{path}")
                    photograph(browser, EVERYTHING / f"{name}-{size}-{scheme}.png", screens=_LONGEST)
                    if name in SHOWN and size == "desktop":
                        photograph(browser, PUBLISHED / f"console-{name}-{scheme}.webp", screens=1)


@contextmanager
def seeded_server() -> Iterator[Running]:
    """Run a server with three tables, two grants and a job."""
    with tempfile.TemporaryDirectory() as folder:
        running = start(
            migrated(Path(folder)),
            console_writes=True,
            admin_token=_TOKEN,
            secret_key="what encrypts the secrets",
            audit="database",
            synchronous="normal",  # a finding for the page of health
        )
        try:
            seed(Live(running.url))
            if "search" in INSTALLED:
                seed_search_index(LiveTableStore(running.url))
            seed_metrics()
            gateway = running.app.extensions["tablegate"].gateway
            gateway.engine.run([StartJob("archive", "shared", "orders", {}, "IN_PROGRESS", 9)])
            for grantee, short in GRANTS.items():
                gateway.grants.add(grantee, WrittenGrant("short", json.dumps(short)))
            seed_accounts(running)
            yield running
        finally:
            running.stop()
            audit.stop()


def migrated(folder: Path) -> str:
    """Create a database in a folder, and return its URL."""
    database = f"sqlite:///{folder}/console.sqlite"
    migrate(connect(load({"database": database}, {})))
    return database


def seed(live: Live) -> None:
    """Create tables like those of a shop, with the same rows at each call."""
    numbers = random.Random(7)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    live.create("customer:S", "order:N", name="orders", indexes=[Index("by-state", "state:S", "total:N")],
                StreamSpecification=stream)  # fmt: skip
    live.create("id:S", name="customers")
    live.create("id:S", name=_LONG_NAME)
    live.create("device:B", "at:N", name="readings")
    orders = [_order(number, numbers) for number in range(200)]
    customers = [
        {"id": {"S": name.lower()}, "name": {"S": name}, "since": {"N": str(2015 + numbers.randrange(10))}}
        for name in _NAMES
    ]
    readings = [
        {"device": {"B": bytes([number % 5, 17, 200])}, "at": {"N": str(1_790_000_000 + 60 * number)},
         "celsius": {"N": f"{numbers.gauss(21, 3):.2f}"}}
        for number in range(60)
    ]  # fmt: skip
    for name, items in (("orders", orders), ("customers", customers), ("readings", readings)):
        for first in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
            live.client.batch_write_item(RequestItems={name: puts})
    live.client.update_continuous_backups(
        TableName="orders", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    live.client.create_backup(TableName="orders", BackupName="before-the-sale")
    arn = live.client.describe_table(TableName="orders")["Table"]["TableArn"]
    live.client.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": "shop"}])
    live.client.update_time_to_live(
        TableName="orders", TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )


def seed_search_index(store: LiveTableStore) -> None:
    """Create a search index on the customers."""
    fields = schema(("name", messages.KEYWORD), ("since", messages.LONG))
    store.call("CreateSearchIndex", table_name="customers", index_name="search", schema=fields)
    store.wait_for_search_index("customers", "search", len(_NAMES))


def seed_accounts(running: Running) -> None:
    """Create credentials and a quota."""
    authorization = {"Authorization": f"Bearer {_TOKEN}"}
    for path, method, document in (
        ("credentials", "POST", {"scheme": "aws", "access_id": "app"}),
        ("credentials", "POST", {"scheme": "azure", "access_id": "reports"}),
        ("quotas", "PUT", {"access_id": "app", "requests": 500, "bytes": 10_000_000_000}),
    ):
        url = f"{running.url}/_tablegate/{path}"
        reply = requests.request(method, url, json=document, headers=authorization, timeout=PATIENCE_S)
        assert reply.status_code == 200, reply.text


def sign_in(running: Running, browser: webdriver.Chrome) -> None:
    """Sign in as the administrator."""
    browser.get(f"{running.url}/_tablegate/console/sign-in")
    browser.find_element(By.NAME, "access_id").send_keys("administrator")
    browser.find_element(By.NAME, "secret").send_keys(_TOKEN, Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda _: "sign-in" not in browser.current_url)


def _order(number: int, numbers: random.Random) -> dict[str, Any]:
    order: dict[str, Any] = {
        "customer": {"S": _NAMES[number % len(_NAMES)].lower()},
        "order": {"N": str(1000 + number)},
        "state": {"S": numbers.choice(["paid", "sent", "open"])},
        "total": {"N": f"{numbers.randrange(500, 90000) / 100:.2f}"},
        "items": {"L": [{"M": {"sku": {"S": f"A-{numbers.randrange(900)}"}, "count": {"N": "2"}}}]},
    }
    if number % 3 == 0:
        order |= {"gift": {"BOOL": True}, "tags": {"SS": ["fragile", "express"]}}
    if number % 5 == 0:
        order["note"] = {"S": "Please leave the parcel with the neighbour on the second floor. " * 3}
    return order


def seed_metrics() -> None:
    """Add the counters of a day, as a shop has them."""
    numbers, end = random.Random(7), time.monotonic() + 120
    found: dict[Counter, float] = {}
    history = MetricHistory()

    def grow(kind: str, name: str, figure: str, more: float) -> None:
        counter = Counter(kind, name, figure)
        found[counter] = found.get(counter, 0.0) + more

    for number in range(DAY_S // FINE_S):
        at_s = end - DAY_S + (number + 1) * FINE_S
        load = 1.2 + math.sin(2 * math.pi * number * FINE_S / DAY_S) + 0.3 * numbers.random()
        for operation, share in (
            ("GetItem", 90),
            ("Query", 40),
            ("PutItem", 25),
            ("UpdateItem", 12),
            ("TransactWriteItems", 6),
            ("Scan", 1),
        ):
            requests = share * load * numbers.uniform(0.8, 1.2) * FINE_S
            grow("server", "", "requests", requests)
            grow("operation", f"dynamodb {operation}", "requests", requests)
            grow("operation", f"dynamodb {operation}", "seconds", requests * 0.002)
        for table, share in (("orders", 60), ("customers", 30), (_LONG_NAME, 15), ("readings", 8)):
            grow("table", table, "read", share * load * FINE_S)
            grow("table", table, "write", share / 3 * load * FINE_S)
        errors = FINE_S * numbers.random()
        grow("server", "", "errors", errors)
        grow("operation", "dynamodb PutItem", "errors", errors)
        grow("server", "", "ticks", 60 * FINE_S)
        grow("server", "", "tick_requests", 60 * FINE_S * (1 + load))
        for bound in BOUNDS:
            below = 1 - math.exp(-bound / (0.001 + 0.0007 * load))
            grow("server", "", bucket(bound), 1000 * below)
        history.add(at_s, dict(found))
    metrics.history.__dict__.update(history.__dict__, sample_if_due=lambda: None)


def paths_of(running: Running, browser: webdriver.Chrome) -> dict[str, str]:
    """Return name -> path of PAGES, with two rows that the browser finds. It is signed in as the administrator."""
    sign_in(running, browser)
    browser.get(f"{running.url}/_tablegate/console{PAGES['rows'].format(orders=_ORDERS)}")
    first, second = [
        quote(str(box.get_attribute("value")), safe="") for box in browser.find_elements(By.NAME, "at")[:2]
    ]
    return {
        name: path.format(orders=_ORDERS, long_name=_LONG_NAME, first=first, second=second)
        for name, path in PAGES.items()
    }


def photograph(browser: webdriver.Chrome, path: Path, screens: int) -> None:
    """Save a picture of a page from its top, as PNG or WebP by the name of the file."""
    width, length, height = browser.execute_script(
        "return [document.documentElement.clientWidth, document.documentElement.scrollHeight, innerHeight]"
    )
    clip = {"x": 0, "y": 0, "width": width, "height": min(length, screens * height), "scale": 1}
    options = {"format": path.suffix[1:], "clip": clip, "captureBeyondViewport": True}
    if path.suffix == ".webp":
        options["quality"] = 80
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    sys.exit(main())
