"""The forms of addresses, for help and error texts. Without imports, because every command shows its help."""

from __future__ import annotations

FORMS = {
    "dynamodb": "dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]",
    "azure-table": "azure-table://ACCOUNT/TABLE[?endpoint=URL]",
    "tablestore": "tablestore://INSTANCE/TABLE?endpoint=URL[&region=REGION]",
    "tablegate": "tablegate:DATABASE-URL#[NAMESPACE/]TABLE",
    "file": "file:PATH",
}
