"""Texts in two styles: one is chosen where an answer is rendered, however deep the text is in it."""

from __future__ import annotations

import json

import pytest

from tablegate.adapters.dynamodb.wire.errors import cancelled, render, validation
from tablegate.adapters.dynamodb.wire.styles import (
    CLASSIC,
    LATEST,
    StyledText,
    classic_of,
    edited,
    json_encoder,
)

TEXT = StyledText("of today", "of ten years ago")


def test_a_text_is_that_of_today():
    assert TEXT == "of today"
    assert classic_of(TEXT) == "of ten years ago"
    assert classic_of("plain") == "plain"


def test_what_is_put_around_a_text_is_put_around_both():
    framed = edited(TEXT, lambda text: f"words {text}")
    assert (framed, classic_of(framed)) == ("words of today", "words of ten years ago")
    assert edited("plain", str.upper) == "PLAIN"


@pytest.mark.parametrize(("style", "text"), [(LATEST, "of today"), (CLASSIC, "of ten years ago")])
def test_documents_have_the_texts_of_a_style(style, text):
    document = {"Responses": [{"Error": {"Message": TEXT, "Code": "ValidationError"}}, {"Item": 1.5}, None]}
    rendered = json.loads(json_encoder(style)(document))
    assert rendered == {
        "Responses": [{"Error": {"Message": text, "Code": "ValidationError"}}, {"Item": 1.5}, None]
    }


@pytest.mark.parametrize(("style", "text"), [(LATEST, "of today"), (CLASSIC, "of ten years ago")])
def test_errors_have_the_texts_of_a_style(style, text):
    assert json.loads(render(validation(TEXT), style))["message"] == text
    reasons = json.loads(render(cancelled([None, validation(TEXT)]), style))["CancellationReasons"]
    assert [reason.get("Message") for reason in reasons] == [None, text]


def test_lone_surrogates_are_shown_as_question_marks():
    error = validation(StyledText("\ud800 a", "\ud800 b"))
    assert [json.loads(render(error, style))["message"] for style in (LATEST, CLASSIC)] == ["? a", "? b"]


def test_a_batch_of_statements_reports_an_empty_key_in_the_style_of_the_server(service, classic):
    head = {service: "are not valid. ", classic: "were invalid: "}
    for each, words in head.items():
        each.table()
        statement = {"Statement": "SELECT * FROM orders WHERE pk = ''"}
        [answer] = each.call("BatchExecuteStatement", {"Statements": [statement]})["Responses"]
        assert words in answer["Error"]["Message"]
