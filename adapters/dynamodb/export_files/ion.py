"""Amazon Ion text as exports write it, to wire values and back.

Knows the part of Ion that DynamoDB's values need: structs, lists, strings, numbers, blobs, booleans, null, and the annotations
of sets. Timestamps, symbols, clobs and s-expressions stand for no value of
DynamoDB and are refused. Numbers keep their text, so that no digit is lost.

Source: https://amazon-ion.github.io/ion-docs/docs/spec.html; "Data formats" in the guide to exports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import Unreadable

Wire = Mapping[str, Any]

VERSION_MARKER = "$ion_1_0"
_SETS = {"SS": "$dynamodb_SS", "NS": "$dynamodb_NS", "BS": "$dynamodb_BS"}
_SET_TAGS = {annotation: tag for tag, annotation in _SETS.items()}
_MEMBER_TAGS = {"SS": "S", "NS": "N", "BS": "B"}
_DEEPEST = 64  # far beyond what an item may have; keeps recursion bounded

_TOKEN = re.compile(
    r"""(?:[ \t\r\n\f\v]|//[^\n]*|/\*.*?\*/)*+
    (?:
      (?P<blob>\{\{[ \t\r\n]*(?P<base64>[A-Za-z0-9+/= \t\r\n]*)\}\})
    | '''(?P<long>(?:[^\\']|\\.|'{1,2}(?!'))*)'''
    | "(?P<string>(?:[^"\\\n]|\\.)*)"
    | '(?P<quoted>(?:[^'\\\n]|\\.)*)'
    | (?P<timestamp>\d{4}(?:-\d\d|T)[-\d:.TZ+]*)
    | (?P<number>-?(?:0|[1-9](?:_?\d)*)(?:\.(?:\d(?:_?\d)*)?)?(?:[dDeE][+-]?\d+)?)(?![\w.])
    | (?P<null>null(?:\.[a-z]+)?)(?![\w$])
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<mark>::|[{}\[\],:])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(\r\n|[\s\S]))", re.ASCII)
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "v": "\v", '"': '"', "'": "'", "/": "/",
    "\\": "\\", "?": "?", "\n": "", "\r\n": "",
}  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"null", "true", "false", "nan"})


# Text -> wire


def parse(text: str) -> dict[str, Any]:
    """The one struct of a line, as a wire map: name -> attribute value. Raises Unreadable."""
    parser = _Parser(text)
    parser.step()
    if parser.token == VERSION_MARKER and parser.group == "word":
        parser.step()
    value = parser.value(0)
    if parser.group != "end":
        raise parser.refusal("more than one value")
    if "M" not in value:
        raise Unreadable("no Ion struct")
    return dict(value["M"])


class _Parser:
    """A cursor over the tokens of a text. `group` is the kind of the token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self.group = ""
        self.token = ""

    def step(self) -> None:
        """Go to the next token."""
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            raise self.refusal("not Ion")
        self._end = found.end()
        self.group = str(found.lastgroup)
        self.token = found.group("base64" if self.group == "blob" else self.group)

    def refusal(self, what: str) -> Unreadable:
        """What is wrong, and where."""
        return Unreadable(f"{what} near column {self._end + 1}")

    def takes(self, mark: str) -> bool:
        """Whether the token is this mark; goes on if it is."""
        if self.group == "mark" and self.token == mark:
            self.step()
            return True
        return False

    def value(self, depth: int) -> dict[str, Any]:
        """The value that begins at the token, which is left behind."""
        if depth > _DEEPEST:
            raise self.refusal("nested too deep")
        group, token = self.group, self.token
        if group == "mark" and token in "{[":
            self.step()
            return {"M": self._struct(depth)} if token == "{" else {"L": self._list(depth)}
        self.step()
        if group in ("word", "quoted") and self.takes("::"):
            return self._annotated(token, depth)
        match group:
            case "string":
                return {"S": self._unescaped(token)}
            case "long":
                parts = [token]
                while self.group == "long":
                    parts.append(self.token)
                    self.step()
                return {"S": "".join(map(self._unescaped, parts))}
            case "number":
                return {"N": token.replace("_", "").lower().replace("d", "e")}
            case "blob":
                return {"B": "".join(token.split())}
            case "null":
                return {"NULL": True}
            case "word" if token in ("true", "false"):
                return {"BOOL": token == "true"}
            case _:
                raise self.refusal(
                    "a value that DynamoDB has not" if group != "end" else "the text ends too early"
                )

    def _struct(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self.takes("}"):
            if self.group not in ("word", "quoted", "string", "long"):
                raise self.refusal("no name of a field")
            name = self.token if self.group == "word" else self._unescaped(self.token)
            self.step()
            if not self.takes(":"):
                raise self.refusal("no colon after a name")
            if name in members:
                raise self.refusal(f"the field {name!r} twice")
            members[name] = self.value(depth + 1)
            if not self.takes(",") and not (self.group == "mark" and self.token == "}"):
                raise self.refusal("no comma and no end of a struct")
        return members

    def _list(self, depth: int) -> list[dict[str, Any]]:
        elements = []
        while not self.takes("]"):
            elements.append(self.value(depth + 1))
            if not self.takes(",") and not (self.group == "mark" and self.token == "]"):
                raise self.refusal("no comma and no end of a list")
        return elements

    def _annotated(self, annotation: str, depth: int) -> dict[str, Any]:
        tag = _SET_TAGS.get(annotation)
        value = self.value(depth)
        if tag is None or "L" not in value:
            raise self.refusal(f"the annotation {annotation} of no set")
        members = []
        for element in value["L"]:
            if _MEMBER_TAGS[tag] not in element:
                raise self.refusal(f"a member that a {tag} cannot have")
            members.append(element[_MEMBER_TAGS[tag]])
        return {tag: members}

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text
        plain = _ESCAPE.sub(self._character, text)
        try:  # a character beyond U+FFFF may be written as two escapes, as JSON has it
            return plain.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.refusal("half of a character") from None

    def _character(self, found: re.Match[str]) -> str:
        code = found.group(1) or found.group(2) or found.group(3)
        if code is None:
            character = _ESCAPED.get(found.group(4))
            if character is None:
                raise self.refusal("an unknown escape")
            return character
        if int(code, 16) > 0x10FFFF:
            raise self.refusal("an unknown escape")
        return chr(int(code, 16))


# Wire -> text


def text_of(members: Wire) -> str:
    """Attribute values by name as a struct."""
    return "{" + ",".join([f"{_name(name)}:{_spelled(member)}" for name, member in members.items()]) + "}"


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _KEYWORDS:
        return name
    return "'" + _quoted(name)[1:-1].replace("'", "\\'") + "'"


def _quoted(text: str) -> str:
    """JSON's escapes are Ion's too."""
    return orjson.dumps(text).decode()


def _spelled(member: Wire) -> str:
    [(tag, data)] = member.items()
    match tag:
        case "S":
            return _quoted(data)
        case "N":
            return data if "." in data else data + "."
        case "B":
            return "{{" + data + "}}"
        case "BOOL":
            return "true" if data else "false"
        case "NULL":
            return "null"
        case "L":
            return "[" + ",".join(map(_spelled, data)) + "]"
        case "M":
            return text_of(data)
    elements = ",".join([_spelled({_MEMBER_TAGS[tag]: element}) for element in data])
    return f"{_SETS[tag]}::[{elements}]"
