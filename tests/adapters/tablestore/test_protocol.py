"""The .proto and the generated module are equal, and the module works with the installed protobuf."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from tablegate.adapters.tablestore.wire.protocol import search_pb2, sql_pb2, table_store_pb2, tunnel_pb2

FOLDER = Path(table_store_pb2.__file__).parent
MODULES = {"search": search_pb2, "sql": sql_pb2, "table_store": table_store_pb2, "tunnel": tunnel_pb2}
_BLOCK = re.compile(r"^(message|enum) (\w+) \{(.*?)\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"(required|optional|repeated) ([\w.]+) (\w+) = (\d+)")
_VALUE = re.compile(r"(\w+) = (\d+);")


def label_of(field: FieldDescriptorProto) -> str:
    return FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()


def type_of(field: FieldDescriptorProto) -> str:
    """Return a type as the .proto writes it. Messages and enums have their name without the package."""
    return (
        field.type_name.rpartition(".")[2]
        or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    )


@pytest.mark.parametrize("module", MODULES)
def test_the_generated_module_is_that_of_the_proto(module: str) -> None:
    """After a change of the .proto: make protocol."""
    proto = (FOLDER / f"{module}.proto").read_text()
    declared = {name: (kind, body) for kind, name, body in _BLOCK.findall(proto)}
    file = FileDescriptorProto()
    MODULES[module].DESCRIPTOR.CopyToProto(file)
    assert sorted(declared) == sorted(part.name for part in (*file.message_type, *file.enum_type))
    for enum in file.enum_type:
        values = {value.name: value.number for value in enum.value}
        assert values == {name: int(number) for name, number in _VALUE.findall(declared[enum.name][1])}, (
            enum.name
        )
    for message in file.message_type:
        generated = {(label_of(field), type_of(field), field.name, field.number) for field in message.field}
        fields = _FIELD.findall(declared[message.name][1])
        assert generated == {(*rest, int(number)) for *rest, number in fields}, message.name


@pytest.mark.parametrize("module", MODULES)
def test_the_generated_module_is_bound_to_no_runtime(module: str) -> None:
    """A module of protoc 26 or later refuses runtimes of other major versions than its own and the next."""
    assert "runtime_version" not in (FOLDER / f"{module}_pb2.py").read_text()
