from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SQLPayloadVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_PLAIN_BUFFER: _ClassVar[SQLPayloadVersion]
    SQL_FLAT_BUFFERS: _ClassVar[SQLPayloadVersion]

class SQLStatementType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQL_SELECT: _ClassVar[SQLStatementType]
    SQL_CREATE_TABLE: _ClassVar[SQLStatementType]
    SQL_SHOW_TABLE: _ClassVar[SQLStatementType]
    SQL_DESCRIBE_TABLE: _ClassVar[SQLStatementType]
    SQL_DROP_TABLE: _ClassVar[SQLStatementType]
    SQL_ALTER_TABLE: _ClassVar[SQLStatementType]
SQL_PLAIN_BUFFER: SQLPayloadVersion
SQL_FLAT_BUFFERS: SQLPayloadVersion
SQL_SELECT: SQLStatementType
SQL_CREATE_TABLE: SQLStatementType
SQL_SHOW_TABLE: SQLStatementType
SQL_DESCRIBE_TABLE: SQLStatementType
SQL_DROP_TABLE: SQLStatementType
SQL_ALTER_TABLE: SQLStatementType

class SQLCapacityUnit(_message.Message):
    __slots__ = ("read", "write")
    READ_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    read: int
    write: int
    def __init__(self, read: _Optional[int] = ..., write: _Optional[int] = ...) -> None: ...

class SQLConsumedCapacity(_message.Message):
    __slots__ = ("capacity_unit",)
    CAPACITY_UNIT_FIELD_NUMBER: _ClassVar[int]
    capacity_unit: SQLCapacityUnit
    def __init__(self, capacity_unit: _Optional[_Union[SQLCapacityUnit, _Mapping]] = ...) -> None: ...

class TableConsumedCapacity(_message.Message):
    __slots__ = ("table_name", "consumed")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    consumed: SQLConsumedCapacity
    def __init__(self, table_name: _Optional[str] = ..., consumed: _Optional[_Union[SQLConsumedCapacity, _Mapping]] = ...) -> None: ...

class SearchConsumedCapacity(_message.Message):
    __slots__ = ("table_name", "index_name", "consumed")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    consumed: SQLConsumedCapacity
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., consumed: _Optional[_Union[SQLConsumedCapacity, _Mapping]] = ...) -> None: ...

class SQLQueryRequest(_message.Message):
    __slots__ = ("query", "version", "sql_version", "search_token")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SQL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEARCH_TOKEN_FIELD_NUMBER: _ClassVar[int]
    query: str
    version: SQLPayloadVersion
    sql_version: int
    search_token: str
    def __init__(self, query: _Optional[str] = ..., version: _Optional[_Union[SQLPayloadVersion, str]] = ..., sql_version: _Optional[int] = ..., search_token: _Optional[str] = ...) -> None: ...

class SQLQueryResponse(_message.Message):
    __slots__ = ("consumes", "rows", "version", "type", "search_consumes")
    CONSUMES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SEARCH_CONSUMES_FIELD_NUMBER: _ClassVar[int]
    consumes: _containers.RepeatedCompositeFieldContainer[TableConsumedCapacity]
    rows: bytes
    version: SQLPayloadVersion
    type: SQLStatementType
    search_consumes: _containers.RepeatedCompositeFieldContainer[SearchConsumedCapacity]
    def __init__(self, consumes: _Optional[_Iterable[_Union[TableConsumedCapacity, _Mapping]]] = ..., rows: _Optional[bytes] = ..., version: _Optional[_Union[SQLPayloadVersion, str]] = ..., type: _Optional[_Union[SQLStatementType, str]] = ..., search_consumes: _Optional[_Iterable[_Union[SearchConsumedCapacity, _Mapping]]] = ...) -> None: ...
