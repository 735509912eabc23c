"""The rule that lets a browser in ("Cross-Origin Resource Sharing (CORS) support for Azure Storage")."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.azuretable.service import cors_headers, is_allowed, preflight_headers

ORIGIN, OTHER = "http://www.contoso.com", "http://www.fabrikam.com"


def rule(**changed: Any) -> dict[str, Any]:
    return {
        "AllowedOrigins": [ORIGIN],
        "AllowedMethods": ["PUT", "GET"],
        "AllowedHeaders": ["x-ms-meta-target*", "X-Ms-Version"],
        "ExposedHeaders": ["x-ms-meta-*"],
        "MaxAgeInSeconds": 200,
        **changed,
    }


@pytest.mark.parametrize(
    ("origin", "method", "headers", "is_allowed"),
    [
        (ORIGIN, "PUT", "", True),
        (ORIGIN, "PUT", "x-ms-version, X-MS-META-Targets", True),
        (ORIGIN, "PUT", "x-ms-meta-target", True),
        (ORIGIN, "PUT", "x-ms-version,x-ms-meta-other", False),
        (ORIGIN, "POST", "", False),
        (OTHER, "PUT", "", False),
        (ORIGIN.upper(), "PUT", "", False),
    ],
)
def test_a_preflight_needs_origin_method_and_every_header(
    origin: str, method: str, headers: str, is_allowed: bool
) -> None:
    assert (preflight_headers([rule()], origin, method, headers) is not None) is is_allowed


def test_the_first_rule_that_matches_answers() -> None:
    rules = [rule(AllowedMethods=["GET"]), rule(MaxAgeInSeconds=5), rule(MaxAgeInSeconds=9)]
    assert preflight_headers(rules, ORIGIN, "PUT", "x-ms-version") == [
        ("Access-Control-Allow-Origin", ORIGIN),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", "PUT"),
        ("Access-Control-Allow-Headers", "x-ms-version"),
        ("Access-Control-Max-Age", "5"),
    ]


def test_any_origin_gets_no_credentials_and_no_vary() -> None:
    rules = [rule(AllowedOrigins=["*"], ExposedHeaders=[])]
    assert cors_headers(rules, OTHER, "GET") == [("Access-Control-Allow-Origin", "*")]


def test_answers_vary_where_a_rule_names_origins() -> None:
    assert cors_headers([rule()], OTHER, "GET") == [("Vary", "Origin")]
    assert cors_headers([rule()], ORIGIN, "GET")[-2:] == [
        ("Access-Control-Expose-Headers", "x-ms-meta-*"),
        ("Vary", "Origin"),
    ]
    assert cors_headers([], OTHER, "GET") == []


def test_any_of_the_rules_may_allow() -> None:
    rules = [rule(), rule(AllowedOrigins=[OTHER], AllowedMethods=["DELETE"])]
    assert is_allowed(rules, OTHER, "DELETE")
    assert not is_allowed(rules, ORIGIN, "DELETE")
