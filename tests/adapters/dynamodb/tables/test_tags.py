"""Tags: by ARN only, all or nothing (test/alternator/test_tag.py, dynalite, ack-api-quirks 107, 110)."""

from __future__ import annotations

import pytest

from tablegate.adapters.dynamodb.wire import limits


def tag(**tags: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


@pytest.fixture
def arn(service) -> str:
    return service.table(Tags=tag(team="a"))["TableArn"]


def tags_of(service, arn: str) -> dict[str, str]:
    answer = service.call("ListTagsOfResource", {"ResourceArn": arn})
    assert service.last.status == 200, answer
    return {item["Key"]: item["Value"] for item in answer["Tags"]}


def refused(service, operation: str, arn: str, **more) -> tuple[str, str]:
    return service.error(operation, {"ResourceArn": arn, **more})


def test_tags_are_set_changed_and_taken_away(service, arn):
    assert tags_of(service, arn) == {"team": "a"}
    service.call("TagResource", {"ResourceArn": arn, "Tags": tag(team="b", empty="")})
    assert (service.last.status, service.last.body) == (200, b"")
    assert tags_of(service, arn) == {"team": "b", "empty": ""}
    service.call("UntagResource", {"ResourceArn": arn, "TagKeys": ["team", "nobody"]})
    assert (service.last.status, service.last.body) == (200, b"")
    assert tags_of(service, arn) == {"empty": ""}


def test_tags_may_hold_letters_of_any_script(service, arn):
    tags = {"законные буквы": "ѮѮ", " ": "9", "a_b.c:d/e=f+g-h@i": "x"}
    service.call("TagResource", {"ResourceArn": arn, "Tags": tag(**tags)})
    assert tags_of(service, arn) == {"team": "a", **tags}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("k" * (limits.TAG_KEY_CHARACTERS + 1), ""),
        ("k", "v" * (limits.TAG_VALUE_CHARACTERS + 1)),
        ("", "dog"),
        ("hi!", "dog"),
        ("dog", "d%g"),
        ("dog", '"hello"'),
        ("aws:zzz", ""),
    ],
)
def test_one_invalid_tag_refuses_the_request(service, arn, key, value):
    code, _ = refused(service, "TagResource", arn, Tags=tag(good="1") + tag(**{key: value}))
    assert code == "ValidationException"
    assert tags_of(service, arn) == {"team": "a"}


@pytest.mark.parametrize("letter", ["x", "א"])
def test_lengths_are_in_characters(service, arn, letter):
    key, value = letter * limits.TAG_KEY_CHARACTERS, letter * limits.TAG_VALUE_CHARACTERS
    service.call("TagResource", {"ResourceArn": arn, "Tags": tag(**{key: value})})
    assert tags_of(service, arn)[key] == value


def test_fifty_tags_are_the_most(service, arn):
    service.call("TagResource", {"ResourceArn": arn, "Tags": tag(**{str(n): "" for n in range(49)})})
    assert len(tags_of(service, arn)) == limits.TAGS
    assert refused(service, "TagResource", arn, Tags=tag(more=""))[0] == "ValidationException"
    service.call("TagResource", {"ResourceArn": arn, "Tags": tag(team="replaced")})
    assert tags_of(service, arn)["team"] == "replaced"


@pytest.mark.parametrize("more", [{"Tags": []}, {}, {"Tags": [{"Key": "dog"}]}, {"Tags": tag(a="1") * 2}])
def test_tags_must_be_there_once_and_whole(service, arn, more):
    assert refused(service, "TagResource", arn, **more)[0] == "ValidationException"


def test_tags_need_an_existing_table(service, arn):
    missing = arn + "x"
    for operation, more in (("TagResource", {"Tags": tag(a="")}), ("UntagResource", {"TagKeys": ["a"]})):
        assert refused(service, operation, missing, **more)[0] == "ResourceNotFoundException"
    assert refused(service, "ListTagsOfResource", missing) == (
        "ResourceNotFoundException",
        f"Requested resource not found: ResourceArn: {missing} not found",
    )


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (
            "I_do_not_exist",
            "One or more parameter values were invalid: ARNs must start with 'arn:': I_do_not_exist",
        ),
        (
            "arn:aws:dynamodb:us-east-1:000000000000:table/ab",
            "Invalid TableArn: Invalid ResourceArn provided as input arn:aws:dynamodb:us-east-1:000000000000:table/ab",
        ),
    ],
)
def test_a_resource_that_is_no_table_gets_its_reason(service, bad, text):
    assert refused(service, "TagResource", bad, Tags=tag(a="")) == ("ValidationException", text)


@pytest.mark.parametrize(
    "bad", ["arn:not/a/good/format", "x" * 125, "arn:" + "scylla/" * 15, " ", "незаконные", "a:b"]
)
def test_a_resource_of_another_form_is_refused(service, bad):
    code, _ = refused(service, "TagResource", bad, Tags=tag(a=""))
    assert code in ("ValidationException", "AccessDeniedException")


def test_an_index_has_no_tags(service, arn):
    code, text = refused(service, "ListTagsOfResource", f"{arn}/index/by-g")
    assert code == "ValidationException"
    assert "esource" in text
