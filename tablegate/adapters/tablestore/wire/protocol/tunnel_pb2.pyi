from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TunnelType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BaseData: _ClassVar[TunnelType]
    Stream: _ClassVar[TunnelType]
    BaseAndStream: _ClassVar[TunnelType]

class StartOffsetFlag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATEST: _ClassVar[StartOffsetFlag]
    EARLIEST: _ClassVar[StartOffsetFlag]

class ChannelStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPEN: _ClassVar[ChannelStatus]
    CLOSING: _ClassVar[ChannelStatus]
    CLOSE: _ClassVar[ChannelStatus]
    TERMINATED: _ClassVar[ChannelStatus]

class ActionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUT_ROW: _ClassVar[ActionType]
    UPDATE_ROW: _ClassVar[ActionType]
    DELETE_ROW: _ClassVar[ActionType]
BaseData: TunnelType
Stream: TunnelType
BaseAndStream: TunnelType
LATEST: StartOffsetFlag
EARLIEST: StartOffsetFlag
OPEN: ChannelStatus
CLOSING: ChannelStatus
CLOSE: ChannelStatus
TERMINATED: ChannelStatus
PUT_ROW: ActionType
UPDATE_ROW: ActionType
DELETE_ROW: ActionType

class StreamTunnelConfig(_message.Message):
    __slots__ = ("flag", "start_offset", "end_offset")
    FLAG_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    flag: StartOffsetFlag
    start_offset: int
    end_offset: int
    def __init__(self, flag: _Optional[_Union[StartOffsetFlag, str]] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class Tunnel(_message.Message):
    __slots__ = ("table_name", "tunnel_name", "tunnel_type", "stream_tunnel_config")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    STREAM_TUNNEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    tunnel_name: str
    tunnel_type: TunnelType
    stream_tunnel_config: StreamTunnelConfig
    def __init__(self, table_name: _Optional[str] = ..., tunnel_name: _Optional[str] = ..., tunnel_type: _Optional[_Union[TunnelType, str]] = ..., stream_tunnel_config: _Optional[_Union[StreamTunnelConfig, _Mapping]] = ...) -> None: ...

class CreateTunnelRequest(_message.Message):
    __slots__ = ("tunnel",)
    TUNNEL_FIELD_NUMBER: _ClassVar[int]
    tunnel: Tunnel
    def __init__(self, tunnel: _Optional[_Union[Tunnel, _Mapping]] = ...) -> None: ...

class CreateTunnelResponse(_message.Message):
    __slots__ = ("tunnel_id",)
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    def __init__(self, tunnel_id: _Optional[str] = ...) -> None: ...

class DeleteTunnelRequest(_message.Message):
    __slots__ = ("table_name", "tunnel_name", "tunnel_id")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    tunnel_name: str
    tunnel_id: str
    def __init__(self, table_name: _Optional[str] = ..., tunnel_name: _Optional[str] = ..., tunnel_id: _Optional[str] = ...) -> None: ...

class DeleteTunnelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTunnelRequest(_message.Message):
    __slots__ = ("table_name",)
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    def __init__(self, table_name: _Optional[str] = ...) -> None: ...

class TunnelInfo(_message.Message):
    __slots__ = ("tunnel_id", "tunnel_type", "table_name", "instance_name", "stream_id", "stage", "expired", "tunnel_name", "public", "stream_tunnel_config", "create_time")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_NAME_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FIELD_NUMBER: _ClassVar[int]
    STREAM_TUNNEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    tunnel_type: str
    table_name: str
    instance_name: str
    stream_id: str
    stage: str
    expired: bool
    tunnel_name: str
    public: bool
    stream_tunnel_config: StreamTunnelConfig
    create_time: int
    def __init__(self, tunnel_id: _Optional[str] = ..., tunnel_type: _Optional[str] = ..., table_name: _Optional[str] = ..., instance_name: _Optional[str] = ..., stream_id: _Optional[str] = ..., stage: _Optional[str] = ..., expired: bool = ..., tunnel_name: _Optional[str] = ..., public: bool = ..., stream_tunnel_config: _Optional[_Union[StreamTunnelConfig, _Mapping]] = ..., create_time: _Optional[int] = ...) -> None: ...

class ListTunnelResponse(_message.Message):
    __slots__ = ("tunnels",)
    TUNNELS_FIELD_NUMBER: _ClassVar[int]
    tunnels: _containers.RepeatedCompositeFieldContainer[TunnelInfo]
    def __init__(self, tunnels: _Optional[_Iterable[_Union[TunnelInfo, _Mapping]]] = ...) -> None: ...

class DescribeTunnelRequest(_message.Message):
    __slots__ = ("table_name", "tunnel_name", "tunnel_id")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    tunnel_name: str
    tunnel_id: str
    def __init__(self, table_name: _Optional[str] = ..., tunnel_name: _Optional[str] = ..., tunnel_id: _Optional[str] = ...) -> None: ...

class ChannelInfo(_message.Message):
    __slots__ = ("channel_id", "channel_type", "channel_status", "client_id", "channel_rpo", "channel_count")
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_STATUS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_RPO_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_COUNT_FIELD_NUMBER: _ClassVar[int]
    channel_id: str
    channel_type: str
    channel_status: str
    client_id: str
    channel_rpo: int
    channel_count: int
    def __init__(self, channel_id: _Optional[str] = ..., channel_type: _Optional[str] = ..., channel_status: _Optional[str] = ..., client_id: _Optional[str] = ..., channel_rpo: _Optional[int] = ..., channel_count: _Optional[int] = ...) -> None: ...

class DescribeTunnelResponse(_message.Message):
    __slots__ = ("tunnel", "channels", "tunnel_rpo")
    TUNNEL_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_RPO_FIELD_NUMBER: _ClassVar[int]
    tunnel: TunnelInfo
    channels: _containers.RepeatedCompositeFieldContainer[ChannelInfo]
    tunnel_rpo: int
    def __init__(self, tunnel: _Optional[_Union[TunnelInfo, _Mapping]] = ..., channels: _Optional[_Iterable[_Union[ChannelInfo, _Mapping]]] = ..., tunnel_rpo: _Optional[int] = ...) -> None: ...

class GetRpoRequest(_message.Message):
    __slots__ = ("tunnel_id",)
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    def __init__(self, tunnel_id: _Optional[str] = ...) -> None: ...

class GetRpoResponse(_message.Message):
    __slots__ = ("rpo_infos", "tunnel_rpo_infos", "tunnel_id")
    RPO_INFOS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_RPO_INFOS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    rpo_infos: bytes
    tunnel_rpo_infos: bytes
    tunnel_id: str
    def __init__(self, rpo_infos: _Optional[bytes] = ..., tunnel_rpo_infos: _Optional[bytes] = ..., tunnel_id: _Optional[str] = ...) -> None: ...

class ClientConfig(_message.Message):
    __slots__ = ("timeout", "client_tag")
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TAG_FIELD_NUMBER: _ClassVar[int]
    timeout: int
    client_tag: str
    def __init__(self, timeout: _Optional[int] = ..., client_tag: _Optional[str] = ...) -> None: ...

class ConnectRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_config")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_config: ClientConfig
    def __init__(self, tunnel_id: _Optional[str] = ..., client_config: _Optional[_Union[ClientConfig, _Mapping]] = ...) -> None: ...

class ConnectResponse(_message.Message):
    __slots__ = ("client_id",)
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    def __init__(self, client_id: _Optional[str] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ("channel_id", "version", "status", "detail")
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    channel_id: str
    version: int
    status: ChannelStatus
    detail: bytes
    def __init__(self, channel_id: _Optional[str] = ..., version: _Optional[int] = ..., status: _Optional[_Union[ChannelStatus, str]] = ..., detail: _Optional[bytes] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_id", "channels")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_id: str
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    def __init__(self, tunnel_id: _Optional[str] = ..., client_id: _Optional[str] = ..., channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("channels",)
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    def __init__(self, channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_id")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_id: str
    def __init__(self, tunnel_id: _Optional[str] = ..., client_id: _Optional[str] = ...) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCheckpointRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_id", "channel_id")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_id: str
    channel_id: str
    def __init__(self, tunnel_id: _Optional[str] = ..., client_id: _Optional[str] = ..., channel_id: _Optional[str] = ...) -> None: ...

class GetCheckpointResponse(_message.Message):
    __slots__ = ("checkpoint", "sequence_number")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    checkpoint: str
    sequence_number: int
    def __init__(self, checkpoint: _Optional[str] = ..., sequence_number: _Optional[int] = ...) -> None: ...

class CheckpointRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_id", "channel_id", "checkpoint", "sequence_number")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_id: str
    channel_id: str
    checkpoint: str
    sequence_number: int
    def __init__(self, tunnel_id: _Optional[str] = ..., client_id: _Optional[str] = ..., channel_id: _Optional[str] = ..., checkpoint: _Optional[str] = ..., sequence_number: _Optional[int] = ...) -> None: ...

class CheckpointResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadRecordsRequest(_message.Message):
    __slots__ = ("tunnel_id", "client_id", "channel_id", "token")
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    tunnel_id: str
    client_id: str
    channel_id: str
    token: str
    def __init__(self, tunnel_id: _Optional[str] = ..., client_id: _Optional[str] = ..., channel_id: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("action_type", "record", "origin_record")
    ACTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_RECORD_FIELD_NUMBER: _ClassVar[int]
    action_type: ActionType
    record: bytes
    origin_record: bytes
    def __init__(self, action_type: _Optional[_Union[ActionType, str]] = ..., record: _Optional[bytes] = ..., origin_record: _Optional[bytes] = ...) -> None: ...

class ReadRecordsResponse(_message.Message):
    __slots__ = ("records", "next_token", "may_more_record")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MAY_MORE_RECORD_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    next_token: str
    may_more_record: bool
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., next_token: _Optional[str] = ..., may_more_record: bool = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("version", "content")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    version: int
    content: bytes
    def __init__(self, version: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class TokenContent(_message.Message):
    __slots__ = ("primary_key", "iterator", "timestamp", "total_count")
    PRIMARY_KEY_FIELD_NUMBER: _ClassVar[int]
    ITERATOR_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    primary_key: bytes
    iterator: str
    timestamp: int
    total_count: int
    def __init__(self, primary_key: _Optional[bytes] = ..., iterator: _Optional[str] = ..., timestamp: _Optional[int] = ..., total_count: _Optional[int] = ...) -> None: ...
