"""Requests for Azure Table, as large as it takes, made of very many small things, that must be refused: by name.

There is a table `things`, with an entity of the keys `p` and `r`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Wasteful(NamedTuple):
    """A request: what it is made of, and what of it is sent."""

    name: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


_ENTITY = "/things(PartitionKey='p',RowKey='r')"
_HTTP = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
_TARGET = "http://127.0.0.1:10002/devstoreaccount1/things"
_ENTITY_BODY = '{"PartitionKey":"p","RowKey":"r"}'


def many(part: str, size_bytes: int, separator: str = "") -> str:
    """Return a text of many equal parts. `#` in a part is replaced by its number."""
    if "#" not in part:
        return separator.join([part] * (size_bytes // (len(part) + len(separator))))
    count = size_bytes // (len(part) + 6)
    return separator.join([part.replace("#", str(number)) for number in range(count)])


def entities(size_bytes: int) -> Iterator[Wasteful]:
    """Entities, inserted and put."""

    def members(part: str) -> str:
        return f'{{"PartitionKey":"p","RowKey":"r",{many(part, size_bytes, ",")}}}'

    def value(edm: str, part: str) -> str:
        return (
            f'{{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.{edm}","a":"{many(part, size_bytes)}"}}'
        )

    def untyped(json: str) -> str:
        return f'{{"PartitionKey":"p","RowKey":"r","a":{json}}}'

    bodies = {
        "many properties": members('"a#":1'),
        "many texts": members('"a#":"x"'),
        "many annotated properties": members('"a#@odata.type":"Edm.Int64"'),
        "many typed properties": members('"a#":"1","a#@odata.type":"Edm.Int64"'),
        "many odata members": members('"odata.#":1'),
        "many nulls": members('"a#":null'),
        "many typed nulls": members('"a#":null,"a#@odata.type":"Edm.Int64"'),
        "many equal properties": members('"a":1'),
        "many equal nulls": members('"a":null'),
        "many bad names": members('"-#":1'),
        "many escaped names": members('"a\\\\#":1'),
        "many escaped nulls": members('"\\u0061#":null'),
        "many large numbers": members('"a#":1e300'),
        "many objects": members('"a#":{}'),
        "an object": untyped("{" + many('"a#":1', size_bytes, ",") + "}"),
        "a list": untyped("[" + many("1", size_bytes, ",") + "]"),
        "a list of lists": untyped("[" + many("[]", size_bytes, ",") + "]"),
        "a list of objects": untyped("[" + many("{}", size_bytes, ",") + "]"),
        "a list of escapes": untyped('["' + many("\\ud800", size_bytes) + '"]'),
        "a deep list": untyped(many("[", size_bytes)),
        "a deep closed list": untyped(many("[", size_bytes // 2) + many("]", size_bytes // 2)),
        "deep lists": untyped("[" + many("[" * 900 + "]" * 900, size_bytes, ",") + "]"),
        "deep objects": untyped("[" + many('{"a":' * 900 + "1" + "}" * 900, size_bytes, ",") + "]"),
        "list outside": "[" + many("1", size_bytes, ",") + "]",
        "a number of digits": untyped(many("1", size_bytes)),
        "half a surrogate": untyped('"' + many("\\ud800", size_bytes) + '"'),
        "escapes": untyped('"' + many("\\u0061", size_bytes) + '"'),
        "backslashes": untyped('"' + many("\\\\", size_bytes) + '"'),
        "a long property": untyped('"' + many("é", size_bytes) + '"'),
        "a long name": f'{{"PartitionKey":"p","RowKey":"r","{many("é", size_bytes)}":1}}',
        "a long key": f'{{"PartitionKey":"{many("é", size_bytes)}","RowKey":"r"}}',
        "spaces": many(" ", size_bytes),
        "no JSON": many("x", size_bytes),
        "a long Int64": value("Int64", "1"),
        "a long Double": value("Double", "1"),
        "a long DateTime": value("DateTime", "1"),
        "a long Binary": value("Binary", "AAAA"),
        "a bad Binary": value("Binary", "é"),
        "a long Guid": value("Guid", "1"),
        "a long Boolean": value("Boolean", "T"),
        "a long type": f'{{"PartitionKey":"p","RowKey":"r","a@odata.type":"{many("x", size_bytes)}","a":1}}',
    }
    for name, text in bodies.items():
        yield Wasteful(name, "POST", "/things", text.encode())
        yield Wasteful(name, "PUT", _ENTITY, text.encode())
    table = f'{{"TableName":"abc",{many(chr(34) + "a#" + chr(34) + ":1", size_bytes, ",")}}}'
    yield Wasteful("a table of many members", "POST", "/Tables", table.encode())
    table = f'{{"TableName":"{many("é", size_bytes)}"}}'
    yield Wasteful("a long table name", "POST", "/Tables", table.encode())


def batches(size_bytes: int) -> Iterator[Wasteful]:
    """Batches: parts in and outside of a changeset."""

    def batch(name: str, body: str, boundary: str = "b") -> Wasteful:
        return Wasteful(
            name,
            "POST",
            "/$batch",
            body.encode("latin-1"),
            {"Content-Type": f"multipart/mixed; boundary={boundary}"},
        )

    post = f"POST {_TARGET} HTTP/1.1\r\n"
    line = _HTTP + post + "Content-Type: application/json\r\n\r\n"
    heads = {
        "changes": "--c\r\n" + line + _ENTITY_BODY + "\r\n",
        "with_number changes": "--c\r\n" + line + '{"PartitionKey":"p","RowKey":"#"}\r\n',
        "empty parts": "--c\r\n\r\n",
        "bare delimiters": "--c\r\n",
        "bare delimiters of LF": "--c\n",
        "parts of a header": "--c\r\na:b\r\n\r\n",
        "broken headers": "--c\r\n" + "ab\r\n" * 20 + "\r\n",
        "delimiters in a line": "x--c",
        "delimiters and more": "--cx\r\n",
        "delimiters with blanks": "--c" + " " * 60 + "x\r\n",
        "delimiters with blanks in LF": "--c" + " " * 60 + "\n",
        "closing delimiters": "--c--\r\n",
        "LF parts": "--c\n\n",
        "queries": "--c\r\n" + _HTTP + f"GET {_TARGET}() HTTP/1.1\r\n\r\n",
    }
    frame = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}--c--\r\n--b--\r\n"
    for name, part in heads.items():
        parts = many(part, size_bytes)
        yield batch(f"many {name}", frame.format(parts))
        yield batch(f"many {name}, no end", frame.format(parts).replace("--c--", "--d--"))
        yield batch(f"many {name} outside", parts + "--c--\r\n", "c")
        yield batch(f"many {name} outside, no end", parts, "c")
    # One operation with one long part.
    inner = {
        "headers": post + many("a: b\r\n", size_bytes) + "\r\n" + _ENTITY_BODY,
        "with_number headers": post + many("a#: b\r\n", size_bytes) + "\r\n" + _ENTITY_BODY,
        "empty lines": many("\r\n", size_bytes) + post + "\r\n" + _ENTITY_BODY,
        "LF lines": post + many("a:b\n", size_bytes) + "\n" + _ENTITY_BODY,
        "CR lines": post + many("a:b\r", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "form feeds": post + many("a:b\f", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "blank": "POST" + many(" ", size_bytes) + _TARGET + "\r\n\r\n" + _ENTITY_BODY,
        "blank at the end": f"POST {_TARGET}" + many(" ", size_bytes) + "x\r\n\r\n" + _ENTITY_BODY,
        "blanks in a line": f"POST {_TARGET}" + many(" x", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "HTTP in a line": f"POST {_TARGET}" + many(" HTTP/1.1", size_bytes) + "x\r\n\r\n" + _ENTITY_BODY,
        "verb": many("POST", size_bytes) + f" {_TARGET}\r\n\r\n" + _ENTITY_BODY,
        "target": f"POST {_TARGET}" + many("a", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "target of quotes": f"PUT {_TARGET}(PartitionKey='"
        + many("'", size_bytes)
        + "\r\n\r\n"
        + _ENTITY_BODY,
        "target of parentheses": f"PUT {_TARGET}" + many("(", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "target of slashes": f"PUT {_TARGET}" + many("/", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "target of escapes": f"PUT {_TARGET}" + many("%41", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "target of bad escapes": f"PUT {_TARGET}" + many("%4%", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "options": f"POST {_TARGET}?" + many("a#=1", size_bytes, "&") + "\r\n\r\n" + _ENTITY_BODY,
        "ampersands": f"POST {_TARGET}?" + many("&", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "body": post + "\r\n" + many("x", size_bytes),
        "body of line breaks": post + "\r\n" + many("\r\n", size_bytes) + "x",
        "body of nulls": post
        + "\r\n"
        + f'{{"PartitionKey":"p","RowKey":"r",{many(chr(34) + "a#" + chr(34) + ":null", size_bytes, ",")}}}',
        "If-Match": f"PUT {_TARGET}(PartitionKey='p',RowKey='r')\r\nIf-Match: W/\"datetime'"
        + many("%3A", size_bytes)
        + "'\"\r\n\r\n"
        + _ENTITY_BODY,
        "Prefer": post + "Prefer: " + many("a ", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "Accept": post + "Accept: " + many("a,", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "X-HTTP-Method": post + many("X-HTTP-Method: a\r\n", size_bytes) + "\r\n\r\n" + _ENTITY_BODY,
        "Content-ID": post + "Content-ID: " + many("a", size_bytes) + "\r\n\r\n" + _ENTITY_BODY + "x",
    }
    for name, text in inner.items():
        yield batch(f"a change with a long {name}", frame.format(f"--c\r\n{_HTTP}{text}\r\n"))
    filters = f"GET {_TARGET}()?$filter="
    queries = {
        "filter of ands": filters + many("a%20eq%201%20and%20", size_bytes) + "a%20eq%201",
        "filter of 32 KB": filters + many("a%20eq%201%20and%20", 50_000) + "a%20eq%201",
        "select": f"GET {_TARGET}()?$select=" + many("a#", size_bytes, ","),
        "select of commas": f"GET {_TARGET}()?$select=" + many(",", size_bytes),
        "select and a bad top": f"GET {_TARGET}()?$top=x&$select=" + many("a#", size_bytes, ","),
        "option": f"GET {_TARGET}()?$top=x&" + many("a#=1", size_bytes, "&"),
        "token": f"GET {_TARGET}()?NextPartitionKey=1!9!" + many("a", size_bytes),
        "token of marks": f"GET {_TARGET}()?NextPartitionKey=" + many("!", size_bytes),
        "$format": f"GET {_TARGET}()?$format=" + many("xml", size_bytes),
    }
    for name, text in queries.items():
        yield batch(f"a query with a long {name}", f"--b\r\n{_HTTP}{text} HTTP/1.1\r\n\r\n\r\n--b--\r\n")
    part_heads = {
        "headers": many("a: b\r\n", size_bytes),
        "with_number headers": many("a#: b\r\n", size_bytes),
        "Content-Type": "Content-Type: multipart/mixed" + many(" boundary", size_bytes) + "\r\n",
        "Content-Type of blanks": "Content-Type: multipart/mixed; boundary" + many(" ", size_bytes) + "x\r\n",
        "Content-Type of boundaries": "Content-Type: multipart/mixed"
        + many(" boundary=", size_bytes)
        + "\r\n",
        "Content-Type of quotes": "Content-Type: multipart/mixed" + many(' boundary="', size_bytes) + "\r\n",
        "Content-Type of long quotes": "Content-Type: multipart/mixed"
        + many(' boundary="' + "a" * 199, size_bytes)
        + "\r\n",
    }
    for name, text in part_heads.items():
        yield batch(f"a part with long {name}", f"--b\r\n{text}\r\n--c\r\n\r\n--c--\r\n--b--\r\n")
    yield batch("line breaks", many("\r\n", size_bytes))
    yield batch("nothing but text", many("x", size_bytes))
    yield batch("dashes", many("-", size_bytes), "-" * 99)
    yield batch("dashes of a line", "--" + "-" * 99 + many("-", size_bytes), "-" * 99)


def documents(size_bytes: int) -> Iterator[Wasteful]:
    """XML: access policies and service properties."""
    acl, properties = "/things?comp=acl", "/?restype=service&comp=properties"
    declared = (
        "<!DOCTYPE a [" + "".join(f'<!ENTITY a{n} "&a{n - 1};&a{n - 1};">' for n in range(1, 100)) + "]>"
    )
    texts = {
        "policies": many("<SignedIdentifier><Id>a</Id></SignedIdentifier>", size_bytes),
        "ids": "<SignedIdentifier>" + many("<Id>a</Id>", size_bytes) + "</SignedIdentifier>",
        "elements": many("<a/>", size_bytes),
        "attributes": "<a " + many('a#="1" ', size_bytes) + "/>",
        "namespaces": "<a " + many('xmlns:a#="1" ', size_bytes) + "/>",
        "nested elements": many("<a>", size_bytes),
        "closed nested elements": many("<a>", size_bytes * 3 // 7) + many("</a>", size_bytes * 4 // 7),
        "references": "<a>" + many("&lt;", size_bytes) + "</a>",
        "comments": many("<!---->", size_bytes),
        "instructions": many("<?a?>", size_bytes),
        "sections": many("<![CDATA[]]>", size_bytes),
        "text": many("x", size_bytes),
    }
    for name, text in texts.items():
        sent = f"<SignedIdentifiers>{text}</SignedIdentifiers>"
        yield Wasteful(f"policies of {name}", "PUT", acl, sent.encode())
        sent = f"<StorageServiceProperties><Cors>{text}</Cors></StorageServiceProperties>"
        yield Wasteful(f"properties of {name}", "PUT", properties, sent.encode())
    for name, text in {
        "rules": "<Cors>" + many("<CorsRule></CorsRule>", size_bytes) + "</Cors>",
        "origins": "<Cors><CorsRule><AllowedOrigins>"
        + many("a", size_bytes, ",")
        + "</AllowedOrigins></CorsRule></Cors>",
        "unknown parts": many("<a/>", size_bytes),
        "numbers": "<Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write>"
        "<RetentionPolicy><Enabled>true</Enabled><Days>"
        + many("1", size_bytes)
        + "</Days></RetentionPolicy></Logging>",
    }.items():
        sent = f"<StorageServiceProperties>{text}</StorageServiceProperties>"
        yield Wasteful(f"properties of {name}", "PUT", properties, sent.encode())
    expanded = f"{declared}<SignedIdentifiers>{many('&a99;', size_bytes)}</SignedIdentifiers>"
    yield Wasteful("policies of declared entities", "PUT", acl, expanded.encode())
    yield Wasteful("policies of declared entities in UTF-16", "PUT", acl, expanded.encode("utf-16"))


def heads(size_bytes: int) -> Iterator[Wasteful]:
    """Long queries, addresses and headers."""
    filters = {
        "ands": many("a%20eq%201%20and%20", size_bytes) + "a%20eq%201",
        "ands that end badly": many("a%20eq%201%20and%20", size_bytes),
        "short ands": many("a+and+", size_bytes) + "a",
        "ors": many("a+or+", size_bytes) + "a+and",
        "nots": many("not%20", size_bytes) + "a%20eq%201",
        "parentheses": many("(", size_bytes),
        "closed parentheses": many("(", size_bytes // 2) + "a%20eq%201" + many(")", size_bytes // 2),
        "groups": many("(a)or", size_bytes) + "(",
        "texts": "a%20eq%20%27" + many("''", size_bytes),
        "open texts": many("'a''", size_bytes),
        "numbers": "a%20eq%20" + many("1", size_bytes),
        "short numbers": many("1+eq+1+and+", size_bytes),
        "numbers with a bad end": "a%20eq%20" + many("1", size_bytes) + "x",
        "dots": "a%20eq%20" + many("1.", size_bytes),
        "names": many("a", size_bytes) + "%20eq",
        "typed": many("x'00'+eq+x'00'+or+", size_bytes),
        "typed without end": "a%20eq%20" + many("x", size_bytes),
        "a long hexadecimal": "a%20eq%20x'" + many("00", size_bytes) + "0'",
        "a long datetime": "a%20eq%20datetime'" + many("1", size_bytes) + "'",
        "a long guid": "a%20eq%20guid'" + many("1", size_bytes) + "'",
        "arguments": "a(" + many("a,", size_bytes) + "a)",
        "keys": many("PartitionKey%20eq%20%27a%27%20and%20", size_bytes) + "RowKey",
        "keys of quotes": "PartitionKey%20eq%20'" + many("''", size_bytes),
        "spaces": many("+", size_bytes) + "!",
        "operators": many("eq+", size_bytes),
        "commas": many(",", size_bytes),
        "accents": many("%C3%A9+", size_bytes) + "!",
    }
    for name, text in filters.items():
        yield Wasteful(f"$filter of {name}", "GET", f"/things()?$filter={text}")
    options = {
        "$select of commas": "$select=" + many(",", size_bytes),
        "$select and a bad $top": "$top=x&$select=" + many("a#", size_bytes, ","),
        "$select of names": "$orderby=a&$select=" + many("a#", size_bytes, ","),
        "$orderby": "$orderby=" + many("a#", size_bytes, ","),
        "$top": "$top=" + many("1", size_bytes),
        "$format": "$format=" + many("xml,", size_bytes),
        "options": "$top=x&" + many("a#=1", size_bytes, "&"),
        "escaped options": "$top=x&" + many("%61#=%61", size_bytes, "&"),
        "ampersands": "$top=x" + many("&", size_bytes),
        "signatures": many("sig=1", size_bytes, "&"),
        "policies": "comp=acl&" + many("a#=%61", size_bytes, "&"),
        "a token": "NextPartitionKey=" + many("1!", size_bytes),
        "a token of base64": "NextPartitionKey=1!9!" + many("AAAA", size_bytes),
        "versions": many("sv=2015-04-0&", size_bytes),
    }
    for name, text in options.items():
        yield Wasteful(f"query of {name}", "GET", f"/things()?{text}")
    addresses = {
        "a long key": f"/things(PartitionKey='{many('a', size_bytes)}',RowKey='r')x",
        "quotes": f"/things(PartitionKey='{many(chr(39), size_bytes)}',RowKey='r')x",
        "quotes and blanks": f"/things(PartitionKey='{many(chr(39) + '%20', size_bytes)}',RowKey='r')",
        "blanks": f"/things({many('%20', size_bytes)}x",
        "blanks inside": f"/things({many('%20', size_bytes)}PartitionKey)",
        "parentheses": f"/things{many('(', size_bytes)}",
        "closed parentheses": f"/things{many('()', size_bytes)}",
        "slashes": f"/things{many('/', size_bytes)}",
        "slashes and names": f"/things{many('/a', size_bytes)}",
        "escapes": f"/things{many('%41', size_bytes)}",
        "bad escapes": f"/things{many('%E9', size_bytes)}",
        "accounts": many("/devstoreaccount1-secondary", size_bytes),
    }
    for name, text in addresses.items():
        yield Wasteful(f"address of {name}", "GET", text)
    headers = {
        "with_number": {f"a{n}": "b" for n in range(size_bytes // 12)},
        "x-ms-": {f"x-ms-a{n}": "b" for n in range(size_bytes // 12)},
        "Accept": {"Accept": many("xml,", size_bytes)},
        "Prefer": {"Prefer": many("a ", size_bytes), "Accept": "xml"},
        "Authorization": {"Authorization": "SharedKey " + many("a:", size_bytes)},
        "bearer token": {"Authorization": "Bearer " + many("a.", size_bytes)},
        "If-Match": {"If-Match": "W/\"datetime'" + many("%3A", size_bytes)},
        "client id": {"x-ms-client-request-id": many("a", size_bytes), "Accept": "xml"},
        "version": {"x-ms-version": many("2", size_bytes)},
        "Origin": {"Origin": many("a", size_bytes), "Accept": "xml"},
        "Content-Type": {"Content-Type": "multipart/mixed" + many(" boundary=", size_bytes)},
        "date": {"x-ms-date": many("1 ", size_bytes)},
    }
    for name, sent in headers.items():
        target = "/$batch" if name == "Content-Type" else _ENTITY
        yield Wasteful(f"headers: {name}", "POST" if name == "Content-Type" else "DELETE", target, b"", sent)
