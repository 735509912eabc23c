"""The OpenAPI document of the control API describes exactly the routes that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import requests

from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.control.faults import _KINDS
from tests.support.waiting import PATIENCE_S

TOKEN = {"Authorization": "Bearer s3cret"}
DOCUMENT: dict[str, Any] = json.loads(Path("tablegate/gateway/control/openapi.json").read_text())


def test_every_route_is_in_the_document_and_nothing_else(sqlite_url: str) -> None:
    made = application_of(create_app(Settings(database=sqlite_url)))
    routes = {
        (re.sub(r"<(\w+)>", r"{\1}", path), method.lower()) for method, path in made.control_routes().paths
    }
    assert routes == {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}


def test_the_openapi_document_is_served(shared_server: str) -> None:
    assert requests.get(f"{shared_server}/_tablegate/openapi.json", timeout=PATIENCE_S).json() == DOCUMENT


def test_the_document_has_the_members_of_a_fault() -> None:
    assert set(DOCUMENT["components"]["schemas"]["NewFault"]["properties"]) == set(_KINDS)


def test_references_lead_somewhere_and_names_in_paths_are_parameters() -> None:
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT)):
        found: Any = DOCUMENT
        for part in reference.split("/"):
            found = found[part]
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            parameters = operation.get("parameters", [])
            named = [each["$ref"].rpartition("/")[2] for each in parameters if each.get("in") != "query"]
            assert re.findall(r"\{(\w+)\}", path) == named


def test_bodies_of_the_document_are_taken_and_others_refused(shared_server: str) -> None:
    """Each operation accepts every member that the document lists and rejects one that it does not list."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" not in content:
                continue
            url = f"{shared_server}/_tablegate{path.replace('{name}', 'nothing')}"
            schema = content["application/json"]["schema"]
            names = schema.get("properties") or DOCUMENT["components"]["schemas"]["NewFault"]["properties"]
            for name in names:
                answer = requests.request(method, url, json={name: None}, headers=TOKEN, timeout=PATIENCE_S)
                assert "is unknown. Known" not in answer.text, (path, name)
            if "{name}" not in path:
                answer = requests.request(
                    method, url, json={"no_such_member": 1}, headers=TOKEN, timeout=PATIENCE_S
                )
                assert (answer.status_code, "is unknown. Known" in answer.text) == (400, True), path


def test_parameters_of_the_document_are_taken_and_others_refused(shared_server: str) -> None:
    found = DOCUMENT["paths"]["/requests"]["get"]["parameters"]
    assert found
    for name in (*(each["name"] for each in found), "no_such_member"):
        answer = requests.get(f"{shared_server}/_tablegate/requests?{name}=x", timeout=PATIENCE_S)
        assert ("is unknown. Known" in answer.text) is (name == "no_such_member"), answer.text
