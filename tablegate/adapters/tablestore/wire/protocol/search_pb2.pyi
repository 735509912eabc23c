from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FieldType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LONG: _ClassVar[FieldType]
    DOUBLE: _ClassVar[FieldType]
    BOOLEAN: _ClassVar[FieldType]
    KEYWORD: _ClassVar[FieldType]
    TEXT: _ClassVar[FieldType]
    NESTED: _ClassVar[FieldType]
    GEO_POINT: _ClassVar[FieldType]
    DATE: _ClassVar[FieldType]
    VECTOR: _ClassVar[FieldType]
    FUZZY_KEYWORD: _ClassVar[FieldType]
    IP: _ClassVar[FieldType]
    JSON: _ClassVar[FieldType]
    FLATTENED: _ClassVar[FieldType]

class IndexOptions(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DOCS: _ClassVar[IndexOptions]
    FREQS: _ClassVar[IndexOptions]
    POSITIONS: _ClassVar[IndexOptions]
    OFFSETS: _ClassVar[IndexOptions]

class VectorDataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FLOAT_32: _ClassVar[VectorDataType]

class VectorMetricType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EUCLIDEAN: _ClassVar[VectorMetricType]
    COSINE: _ClassVar[VectorMetricType]
    DOT_PRODUCT: _ClassVar[VectorMetricType]

class SyncPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FULL: _ClassVar[SyncPhase]
    INCR: _ClassVar[SyncPhase]

class IndexStatusEnum(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PENDING: _ClassVar[IndexStatusEnum]
    FAILED: _ClassVar[IndexStatusEnum]
    RUNNING: _ClassVar[IndexStatusEnum]

class QueryType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCH_QUERY: _ClassVar[QueryType]
    MATCH_PHRASE_QUERY: _ClassVar[QueryType]
    TERM_QUERY: _ClassVar[QueryType]
    RANGE_QUERY: _ClassVar[QueryType]
    PREFIX_QUERY: _ClassVar[QueryType]
    BOOL_QUERY: _ClassVar[QueryType]
    CONST_SCORE_QUERY: _ClassVar[QueryType]
    FUNCTION_SCORE_QUERY: _ClassVar[QueryType]
    NESTED_QUERY: _ClassVar[QueryType]
    WILDCARD_QUERY: _ClassVar[QueryType]
    MATCH_ALL_QUERY: _ClassVar[QueryType]
    GEO_BOUNDING_BOX_QUERY: _ClassVar[QueryType]
    GEO_DISTANCE_QUERY: _ClassVar[QueryType]
    GEO_POLYGON_QUERY: _ClassVar[QueryType]
    TERMS_QUERY: _ClassVar[QueryType]
    EXISTS_QUERY: _ClassVar[QueryType]
    KNN_VECTOR_QUERY: _ClassVar[QueryType]
    FUNCTIONS_SCORE_QUERY: _ClassVar[QueryType]
    SUFFIX_QUERY: _ClassVar[QueryType]
    DIS_MAX_QUERY: _ClassVar[QueryType]

class QueryOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OR: _ClassVar[QueryOperator]
    AND: _ClassVar[QueryOperator]

class DateTimeUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    YEAR: _ClassVar[DateTimeUnit]
    QUARTER_YEAR: _ClassVar[DateTimeUnit]
    MONTH: _ClassVar[DateTimeUnit]
    WEEK: _ClassVar[DateTimeUnit]
    DAY: _ClassVar[DateTimeUnit]
    HOUR: _ClassVar[DateTimeUnit]
    MINUTE: _ClassVar[DateTimeUnit]
    SECOND: _ClassVar[DateTimeUnit]
    MILLISECOND: _ClassVar[DateTimeUnit]

class FunctionModifier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FM_NONE: _ClassVar[FunctionModifier]
    FM_LOG: _ClassVar[FunctionModifier]
    FM_LOG1P: _ClassVar[FunctionModifier]
    FM_LOG2P: _ClassVar[FunctionModifier]
    FM_LN: _ClassVar[FunctionModifier]
    FM_LN1P: _ClassVar[FunctionModifier]
    FM_LN2P: _ClassVar[FunctionModifier]
    FM_SQUARE: _ClassVar[FunctionModifier]
    FM_SQRT: _ClassVar[FunctionModifier]
    FM_RECIPROCAL: _ClassVar[FunctionModifier]

class DecayFuncParamType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DF_DATE_PARAM: _ClassVar[DecayFuncParamType]
    DF_NUMERIC_PARAM: _ClassVar[DecayFuncParamType]
    DF_GEO_PARAM: _ClassVar[DecayFuncParamType]

class DecayMathFunction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAUSS: _ClassVar[DecayMathFunction]
    EXP: _ClassVar[DecayMathFunction]
    LINEAR: _ClassVar[DecayMathFunction]

class MultiValueMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MVM_MAX: _ClassVar[MultiValueMode]
    MVM_MIN: _ClassVar[MultiValueMode]
    MVM_SUM: _ClassVar[MultiValueMode]
    MVM_AVG: _ClassVar[MultiValueMode]

class FunctionScoreMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FSM_AVG: _ClassVar[FunctionScoreMode]
    FSM_MAX: _ClassVar[FunctionScoreMode]
    FSM_SUM: _ClassVar[FunctionScoreMode]
    FSM_MIN: _ClassVar[FunctionScoreMode]
    FSM_MULTIPLY: _ClassVar[FunctionScoreMode]
    FSM_FIRST: _ClassVar[FunctionScoreMode]

class FunctionCombineMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FCM_MULTIPLY: _ClassVar[FunctionCombineMode]
    FCM_AVG: _ClassVar[FunctionCombineMode]
    FCM_MAX: _ClassVar[FunctionCombineMode]
    FCM_SUM: _ClassVar[FunctionCombineMode]
    FCM_MIN: _ClassVar[FunctionCombineMode]
    FCM_REPLACE: _ClassVar[FunctionCombineMode]

class ScoreMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCORE_MODE_NONE: _ClassVar[ScoreMode]
    SCORE_MODE_AVG: _ClassVar[ScoreMode]
    SCORE_MODE_MAX: _ClassVar[ScoreMode]
    SCORE_MODE_TOTAL: _ClassVar[ScoreMode]
    SCORE_MODE_MIN: _ClassVar[ScoreMode]

class SortOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SORT_ORDER_ASC: _ClassVar[SortOrder]
    SORT_ORDER_DESC: _ClassVar[SortOrder]

class SortMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SORT_MODE_MIN: _ClassVar[SortMode]
    SORT_MODE_MAX: _ClassVar[SortMode]
    SORT_MODE_AVG: _ClassVar[SortMode]

class GeoDistanceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GEO_DISTANCE_ARC: _ClassVar[GeoDistanceType]
    GEO_DISTANCE_PLANE: _ClassVar[GeoDistanceType]

class HighlightFragmentOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_SEQUENCE: _ClassVar[HighlightFragmentOrder]
    SCORE: _ClassVar[HighlightFragmentOrder]

class HighlightEncoder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAIN_MODE: _ClassVar[HighlightEncoder]
    HTML_MODE: _ClassVar[HighlightEncoder]

class ColumnReturnType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETURN_ALL: _ClassVar[ColumnReturnType]
    RETURN_SPECIFIED: _ClassVar[ColumnReturnType]
    RETURN_NONE: _ClassVar[ColumnReturnType]
    RETURN_ALL_FROM_INDEX: _ClassVar[ColumnReturnType]

class AggregationType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGG_AVG: _ClassVar[AggregationType]
    AGG_MAX: _ClassVar[AggregationType]
    AGG_MIN: _ClassVar[AggregationType]
    AGG_SUM: _ClassVar[AggregationType]
    AGG_COUNT: _ClassVar[AggregationType]
    AGG_DISTINCT_COUNT: _ClassVar[AggregationType]
    AGG_TOP_ROWS: _ClassVar[AggregationType]
    AGG_PERCENTILES: _ClassVar[AggregationType]

class GroupByType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_BY_FIELD: _ClassVar[GroupByType]
    GROUP_BY_RANGE: _ClassVar[GroupByType]
    GROUP_BY_FILTER: _ClassVar[GroupByType]
    GROUP_BY_GEO_DISTANCE: _ClassVar[GroupByType]
    GROUP_BY_HISTOGRAM: _ClassVar[GroupByType]
    GROUP_BY_DATE_HISTOGRAM: _ClassVar[GroupByType]
    GROUP_BY_GEO_GRID: _ClassVar[GroupByType]
    GROUP_BY_COMPOSITE: _ClassVar[GroupByType]
LONG: FieldType
DOUBLE: FieldType
BOOLEAN: FieldType
KEYWORD: FieldType
TEXT: FieldType
NESTED: FieldType
GEO_POINT: FieldType
DATE: FieldType
VECTOR: FieldType
FUZZY_KEYWORD: FieldType
IP: FieldType
JSON: FieldType
FLATTENED: FieldType
DOCS: IndexOptions
FREQS: IndexOptions
POSITIONS: IndexOptions
OFFSETS: IndexOptions
FLOAT_32: VectorDataType
EUCLIDEAN: VectorMetricType
COSINE: VectorMetricType
DOT_PRODUCT: VectorMetricType
FULL: SyncPhase
INCR: SyncPhase
PENDING: IndexStatusEnum
FAILED: IndexStatusEnum
RUNNING: IndexStatusEnum
MATCH_QUERY: QueryType
MATCH_PHRASE_QUERY: QueryType
TERM_QUERY: QueryType
RANGE_QUERY: QueryType
PREFIX_QUERY: QueryType
BOOL_QUERY: QueryType
CONST_SCORE_QUERY: QueryType
FUNCTION_SCORE_QUERY: QueryType
NESTED_QUERY: QueryType
WILDCARD_QUERY: QueryType
MATCH_ALL_QUERY: QueryType
GEO_BOUNDING_BOX_QUERY: QueryType
GEO_DISTANCE_QUERY: QueryType
GEO_POLYGON_QUERY: QueryType
TERMS_QUERY: QueryType
EXISTS_QUERY: QueryType
KNN_VECTOR_QUERY: QueryType
FUNCTIONS_SCORE_QUERY: QueryType
SUFFIX_QUERY: QueryType
DIS_MAX_QUERY: QueryType
OR: QueryOperator
AND: QueryOperator
YEAR: DateTimeUnit
QUARTER_YEAR: DateTimeUnit
MONTH: DateTimeUnit
WEEK: DateTimeUnit
DAY: DateTimeUnit
HOUR: DateTimeUnit
MINUTE: DateTimeUnit
SECOND: DateTimeUnit
MILLISECOND: DateTimeUnit
FM_NONE: FunctionModifier
FM_LOG: FunctionModifier
FM_LOG1P: FunctionModifier
FM_LOG2P: FunctionModifier
FM_LN: FunctionModifier
FM_LN1P: FunctionModifier
FM_LN2P: FunctionModifier
FM_SQUARE: FunctionModifier
FM_SQRT: FunctionModifier
FM_RECIPROCAL: FunctionModifier
DF_DATE_PARAM: DecayFuncParamType
DF_NUMERIC_PARAM: DecayFuncParamType
DF_GEO_PARAM: DecayFuncParamType
GAUSS: DecayMathFunction
EXP: DecayMathFunction
LINEAR: DecayMathFunction
MVM_MAX: MultiValueMode
MVM_MIN: MultiValueMode
MVM_SUM: MultiValueMode
MVM_AVG: MultiValueMode
FSM_AVG: FunctionScoreMode
FSM_MAX: FunctionScoreMode
FSM_SUM: FunctionScoreMode
FSM_MIN: FunctionScoreMode
FSM_MULTIPLY: FunctionScoreMode
FSM_FIRST: FunctionScoreMode
FCM_MULTIPLY: FunctionCombineMode
FCM_AVG: FunctionCombineMode
FCM_MAX: FunctionCombineMode
FCM_SUM: FunctionCombineMode
FCM_MIN: FunctionCombineMode
FCM_REPLACE: FunctionCombineMode
SCORE_MODE_NONE: ScoreMode
SCORE_MODE_AVG: ScoreMode
SCORE_MODE_MAX: ScoreMode
SCORE_MODE_TOTAL: ScoreMode
SCORE_MODE_MIN: ScoreMode
SORT_ORDER_ASC: SortOrder
SORT_ORDER_DESC: SortOrder
SORT_MODE_MIN: SortMode
SORT_MODE_MAX: SortMode
SORT_MODE_AVG: SortMode
GEO_DISTANCE_ARC: GeoDistanceType
GEO_DISTANCE_PLANE: GeoDistanceType
TEXT_SEQUENCE: HighlightFragmentOrder
SCORE: HighlightFragmentOrder
PLAIN_MODE: HighlightEncoder
HTML_MODE: HighlightEncoder
RETURN_ALL: ColumnReturnType
RETURN_SPECIFIED: ColumnReturnType
RETURN_NONE: ColumnReturnType
RETURN_ALL_FROM_INDEX: ColumnReturnType
AGG_AVG: AggregationType
AGG_MAX: AggregationType
AGG_MIN: AggregationType
AGG_SUM: AggregationType
AGG_COUNT: AggregationType
AGG_DISTINCT_COUNT: AggregationType
AGG_TOP_ROWS: AggregationType
AGG_PERCENTILES: AggregationType
GROUP_BY_FIELD: GroupByType
GROUP_BY_RANGE: GroupByType
GROUP_BY_FILTER: GroupByType
GROUP_BY_GEO_DISTANCE: GroupByType
GROUP_BY_HISTOGRAM: GroupByType
GROUP_BY_DATE_HISTOGRAM: GroupByType
GROUP_BY_GEO_GRID: GroupByType
GROUP_BY_COMPOSITE: GroupByType

class VectorOptions(_message.Message):
    __slots__ = ("data_type", "dimension", "metric_type")
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    METRIC_TYPE_FIELD_NUMBER: _ClassVar[int]
    data_type: VectorDataType
    dimension: int
    metric_type: VectorMetricType
    def __init__(self, data_type: _Optional[_Union[VectorDataType, str]] = ..., dimension: _Optional[int] = ..., metric_type: _Optional[_Union[VectorMetricType, str]] = ...) -> None: ...

class SingleWordAnalyzerParameter(_message.Message):
    __slots__ = ("case_sensitive", "delimit_word")
    CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    DELIMIT_WORD_FIELD_NUMBER: _ClassVar[int]
    case_sensitive: bool
    delimit_word: bool
    def __init__(self, case_sensitive: bool = ..., delimit_word: bool = ...) -> None: ...

class SplitAnalyzerParameter(_message.Message):
    __slots__ = ("delimiter", "case_sensitive")
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    delimiter: str
    case_sensitive: bool
    def __init__(self, delimiter: _Optional[str] = ..., case_sensitive: bool = ...) -> None: ...

class FuzzyAnalyzerParameter(_message.Message):
    __slots__ = ("min_chars", "max_chars", "case_sensitive")
    MIN_CHARS_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARS_FIELD_NUMBER: _ClassVar[int]
    CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    min_chars: int
    max_chars: int
    case_sensitive: bool
    def __init__(self, min_chars: _Optional[int] = ..., max_chars: _Optional[int] = ..., case_sensitive: bool = ...) -> None: ...

class FieldSchema(_message.Message):
    __slots__ = ("field_name", "field_type", "index_options", "analyzer", "index", "sort_and_agg", "store", "field_schemas", "is_array", "analyzer_parameter", "is_virtual_field", "source_field_names", "date_formats", "enable_highlighting", "vector_options", "json_type", "text_similarity")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    FIELD_TYPE_FIELD_NUMBER: _ClassVar[int]
    INDEX_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ANALYZER_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SORT_AND_AGG_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    FIELD_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    IS_ARRAY_FIELD_NUMBER: _ClassVar[int]
    ANALYZER_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    IS_VIRTUAL_FIELD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NAMES_FIELD_NUMBER: _ClassVar[int]
    DATE_FORMATS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_HIGHLIGHTING_FIELD_NUMBER: _ClassVar[int]
    VECTOR_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    JSON_TYPE_FIELD_NUMBER: _ClassVar[int]
    TEXT_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    field_type: FieldType
    index_options: IndexOptions
    analyzer: str
    index: bool
    sort_and_agg: bool
    store: bool
    field_schemas: _containers.RepeatedCompositeFieldContainer[FieldSchema]
    is_array: bool
    analyzer_parameter: bytes
    is_virtual_field: bool
    source_field_names: _containers.RepeatedScalarFieldContainer[str]
    date_formats: _containers.RepeatedScalarFieldContainer[str]
    enable_highlighting: bool
    vector_options: VectorOptions
    json_type: int
    text_similarity: int
    def __init__(self, field_name: _Optional[str] = ..., field_type: _Optional[_Union[FieldType, str]] = ..., index_options: _Optional[_Union[IndexOptions, str]] = ..., analyzer: _Optional[str] = ..., index: bool = ..., sort_and_agg: bool = ..., store: bool = ..., field_schemas: _Optional[_Iterable[_Union[FieldSchema, _Mapping]]] = ..., is_array: bool = ..., analyzer_parameter: _Optional[bytes] = ..., is_virtual_field: bool = ..., source_field_names: _Optional[_Iterable[str]] = ..., date_formats: _Optional[_Iterable[str]] = ..., enable_highlighting: bool = ..., vector_options: _Optional[_Union[VectorOptions, _Mapping]] = ..., json_type: _Optional[int] = ..., text_similarity: _Optional[int] = ...) -> None: ...

class IndexSetting(_message.Message):
    __slots__ = ("number_of_shards", "routing_fields", "routing_partition_size", "enable_custom_column_version")
    NUMBER_OF_SHARDS_FIELD_NUMBER: _ClassVar[int]
    ROUTING_FIELDS_FIELD_NUMBER: _ClassVar[int]
    ROUTING_PARTITION_SIZE_FIELD_NUMBER: _ClassVar[int]
    ENABLE_CUSTOM_COLUMN_VERSION_FIELD_NUMBER: _ClassVar[int]
    number_of_shards: int
    routing_fields: _containers.RepeatedScalarFieldContainer[str]
    routing_partition_size: int
    enable_custom_column_version: bool
    def __init__(self, number_of_shards: _Optional[int] = ..., routing_fields: _Optional[_Iterable[str]] = ..., routing_partition_size: _Optional[int] = ..., enable_custom_column_version: bool = ...) -> None: ...

class IndexSchema(_message.Message):
    __slots__ = ("field_schemas", "index_setting", "index_sort")
    FIELD_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    INDEX_SETTING_FIELD_NUMBER: _ClassVar[int]
    INDEX_SORT_FIELD_NUMBER: _ClassVar[int]
    field_schemas: _containers.RepeatedCompositeFieldContainer[FieldSchema]
    index_setting: IndexSetting
    index_sort: Sort
    def __init__(self, field_schemas: _Optional[_Iterable[_Union[FieldSchema, _Mapping]]] = ..., index_setting: _Optional[_Union[IndexSetting, _Mapping]] = ..., index_sort: _Optional[_Union[Sort, _Mapping]] = ...) -> None: ...

class CreateSearchIndexRequest(_message.Message):
    __slots__ = ("table_name", "index_name", "schema", "source_index_name", "time_to_live")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SOURCE_INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_LIVE_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    schema: IndexSchema
    source_index_name: str
    time_to_live: int
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., schema: _Optional[_Union[IndexSchema, _Mapping]] = ..., source_index_name: _Optional[str] = ..., time_to_live: _Optional[int] = ...) -> None: ...

class CreateSearchIndexResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryFlowWeight(_message.Message):
    __slots__ = ("index_name", "weight")
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    index_name: str
    weight: int
    def __init__(self, index_name: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class UpdateSearchIndexRequest(_message.Message):
    __slots__ = ("table_name", "index_name", "switch_index_name", "query_flow_weight", "time_to_live", "added_field_schemas")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    SWITCH_INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    QUERY_FLOW_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_LIVE_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    switch_index_name: str
    query_flow_weight: _containers.RepeatedCompositeFieldContainer[QueryFlowWeight]
    time_to_live: int
    added_field_schemas: _containers.RepeatedCompositeFieldContainer[FieldSchema]
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., switch_index_name: _Optional[str] = ..., query_flow_weight: _Optional[_Iterable[_Union[QueryFlowWeight, _Mapping]]] = ..., time_to_live: _Optional[int] = ..., added_field_schemas: _Optional[_Iterable[_Union[FieldSchema, _Mapping]]] = ...) -> None: ...

class UpdateSearchIndexResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class IndexInfo(_message.Message):
    __slots__ = ("table_name", "index_name")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ...) -> None: ...

class ListSearchIndexRequest(_message.Message):
    __slots__ = ("table_name",)
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    def __init__(self, table_name: _Optional[str] = ...) -> None: ...

class ListSearchIndexResponse(_message.Message):
    __slots__ = ("indices",)
    INDICES_FIELD_NUMBER: _ClassVar[int]
    indices: _containers.RepeatedCompositeFieldContainer[IndexInfo]
    def __init__(self, indices: _Optional[_Iterable[_Union[IndexInfo, _Mapping]]] = ...) -> None: ...

class DeleteSearchIndexRequest(_message.Message):
    __slots__ = ("table_name", "index_name")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ...) -> None: ...

class DeleteSearchIndexResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeSearchIndexRequest(_message.Message):
    __slots__ = ("table_name", "index_name", "include_sync_stat")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SYNC_STAT_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    include_sync_stat: bool
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., include_sync_stat: bool = ...) -> None: ...

class SyncStat(_message.Message):
    __slots__ = ("sync_phase", "current_sync_timestamp")
    SYNC_PHASE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_SYNC_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    sync_phase: SyncPhase
    current_sync_timestamp: int
    def __init__(self, sync_phase: _Optional[_Union[SyncPhase, str]] = ..., current_sync_timestamp: _Optional[int] = ...) -> None: ...

class IndexStatus(_message.Message):
    __slots__ = ("status", "status_description")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATUS_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    status: IndexStatusEnum
    status_description: str
    def __init__(self, status: _Optional[_Union[IndexStatusEnum, str]] = ..., status_description: _Optional[str] = ...) -> None: ...

class MeteringInfo(_message.Message):
    __slots__ = ("storage_size", "row_count", "reserved_read_cu", "timestamp")
    STORAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESERVED_READ_CU_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    storage_size: int
    row_count: int
    reserved_read_cu: int
    timestamp: int
    def __init__(self, storage_size: _Optional[int] = ..., row_count: _Optional[int] = ..., reserved_read_cu: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class DescribeSearchIndexResponse(_message.Message):
    __slots__ = ("schema", "sync_stat", "metering_info", "brother_index_name", "query_flow_weight", "create_time", "time_to_live", "index_status")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SYNC_STAT_FIELD_NUMBER: _ClassVar[int]
    METERING_INFO_FIELD_NUMBER: _ClassVar[int]
    BROTHER_INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    QUERY_FLOW_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_LIVE_FIELD_NUMBER: _ClassVar[int]
    INDEX_STATUS_FIELD_NUMBER: _ClassVar[int]
    schema: IndexSchema
    sync_stat: SyncStat
    metering_info: MeteringInfo
    brother_index_name: str
    query_flow_weight: _containers.RepeatedCompositeFieldContainer[QueryFlowWeight]
    create_time: int
    time_to_live: int
    index_status: IndexStatus
    def __init__(self, schema: _Optional[_Union[IndexSchema, _Mapping]] = ..., sync_stat: _Optional[_Union[SyncStat, _Mapping]] = ..., metering_info: _Optional[_Union[MeteringInfo, _Mapping]] = ..., brother_index_name: _Optional[str] = ..., query_flow_weight: _Optional[_Iterable[_Union[QueryFlowWeight, _Mapping]]] = ..., create_time: _Optional[int] = ..., time_to_live: _Optional[int] = ..., index_status: _Optional[_Union[IndexStatus, _Mapping]] = ...) -> None: ...

class Query(_message.Message):
    __slots__ = ("type", "query")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    type: QueryType
    query: bytes
    def __init__(self, type: _Optional[_Union[QueryType, str]] = ..., query: _Optional[bytes] = ...) -> None: ...

class MatchQuery(_message.Message):
    __slots__ = ("field_name", "text", "minimum_should_match", "operator", "weight", "new_minimum_should_match")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_SHOULD_MATCH_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NEW_MINIMUM_SHOULD_MATCH_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    text: str
    minimum_should_match: int
    operator: QueryOperator
    weight: float
    new_minimum_should_match: str
    def __init__(self, field_name: _Optional[str] = ..., text: _Optional[str] = ..., minimum_should_match: _Optional[int] = ..., operator: _Optional[_Union[QueryOperator, str]] = ..., weight: _Optional[float] = ..., new_minimum_should_match: _Optional[str] = ...) -> None: ...

class MatchPhraseQuery(_message.Message):
    __slots__ = ("field_name", "text", "weight", "slop")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SLOP_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    text: str
    weight: float
    slop: int
    def __init__(self, field_name: _Optional[str] = ..., text: _Optional[str] = ..., weight: _Optional[float] = ..., slop: _Optional[int] = ...) -> None: ...

class MatchAllQuery(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TermQuery(_message.Message):
    __slots__ = ("field_name", "term", "weight")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    term: bytes
    weight: float
    def __init__(self, field_name: _Optional[str] = ..., term: _Optional[bytes] = ..., weight: _Optional[float] = ...) -> None: ...

class TermsQuery(_message.Message):
    __slots__ = ("field_name", "terms", "weight")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    terms: _containers.RepeatedScalarFieldContainer[bytes]
    weight: float
    def __init__(self, field_name: _Optional[str] = ..., terms: _Optional[_Iterable[bytes]] = ..., weight: _Optional[float] = ...) -> None: ...

class RangeQuery(_message.Message):
    __slots__ = ("field_name", "range_from", "range_to", "include_lower", "include_upper")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    RANGE_FROM_FIELD_NUMBER: _ClassVar[int]
    RANGE_TO_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_LOWER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_UPPER_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    range_from: bytes
    range_to: bytes
    include_lower: bool
    include_upper: bool
    def __init__(self, field_name: _Optional[str] = ..., range_from: _Optional[bytes] = ..., range_to: _Optional[bytes] = ..., include_lower: bool = ..., include_upper: bool = ...) -> None: ...

class PrefixQuery(_message.Message):
    __slots__ = ("field_name", "prefix", "weight")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    prefix: str
    weight: float
    def __init__(self, field_name: _Optional[str] = ..., prefix: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class SuffixQuery(_message.Message):
    __slots__ = ("field_name", "suffix", "weight")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    SUFFIX_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    suffix: str
    weight: float
    def __init__(self, field_name: _Optional[str] = ..., suffix: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class WildcardQuery(_message.Message):
    __slots__ = ("field_name", "value", "weight")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    value: str
    weight: float
    def __init__(self, field_name: _Optional[str] = ..., value: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class BoolQuery(_message.Message):
    __slots__ = ("must_queries", "must_not_queries", "filter_queries", "should_queries", "minimum_should_match", "new_minimum_should_match", "weight")
    MUST_QUERIES_FIELD_NUMBER: _ClassVar[int]
    MUST_NOT_QUERIES_FIELD_NUMBER: _ClassVar[int]
    FILTER_QUERIES_FIELD_NUMBER: _ClassVar[int]
    SHOULD_QUERIES_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_SHOULD_MATCH_FIELD_NUMBER: _ClassVar[int]
    NEW_MINIMUM_SHOULD_MATCH_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    must_queries: _containers.RepeatedCompositeFieldContainer[Query]
    must_not_queries: _containers.RepeatedCompositeFieldContainer[Query]
    filter_queries: _containers.RepeatedCompositeFieldContainer[Query]
    should_queries: _containers.RepeatedCompositeFieldContainer[Query]
    minimum_should_match: int
    new_minimum_should_match: str
    weight: float
    def __init__(self, must_queries: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., must_not_queries: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., filter_queries: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., should_queries: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., minimum_should_match: _Optional[int] = ..., new_minimum_should_match: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class ConstScoreQuery(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: Query
    def __init__(self, filter: _Optional[_Union[Query, _Mapping]] = ...) -> None: ...

class FieldValueFactor(_message.Message):
    __slots__ = ("field_name",)
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    def __init__(self, field_name: _Optional[str] = ...) -> None: ...

class FunctionScoreQuery(_message.Message):
    __slots__ = ("query", "field_value_factor")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FIELD_VALUE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    query: Query
    field_value_factor: FieldValueFactor
    def __init__(self, query: _Optional[_Union[Query, _Mapping]] = ..., field_value_factor: _Optional[_Union[FieldValueFactor, _Mapping]] = ...) -> None: ...

class DateTimeValue(_message.Message):
    __slots__ = ("value", "unit")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    value: int
    unit: DateTimeUnit
    def __init__(self, value: _Optional[int] = ..., unit: _Optional[_Union[DateTimeUnit, str]] = ...) -> None: ...

class FunctionsScoreQuery(_message.Message):
    __slots__ = ("query", "functions", "score_mode", "combine_mode", "min_score", "max_score")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    SCORE_MODE_FIELD_NUMBER: _ClassVar[int]
    COMBINE_MODE_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MAX_SCORE_FIELD_NUMBER: _ClassVar[int]
    query: Query
    functions: _containers.RepeatedCompositeFieldContainer[Function]
    score_mode: FunctionScoreMode
    combine_mode: FunctionCombineMode
    min_score: float
    max_score: float
    def __init__(self, query: _Optional[_Union[Query, _Mapping]] = ..., functions: _Optional[_Iterable[_Union[Function, _Mapping]]] = ..., score_mode: _Optional[_Union[FunctionScoreMode, str]] = ..., combine_mode: _Optional[_Union[FunctionCombineMode, str]] = ..., min_score: _Optional[float] = ..., max_score: _Optional[float] = ...) -> None: ...

class Function(_message.Message):
    __slots__ = ("field_value_factor", "random", "decay", "weight", "filter")
    FIELD_VALUE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    RANDOM_FIELD_NUMBER: _ClassVar[int]
    DECAY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    field_value_factor: FieldValueFactorFunction
    random: RandomScoreFunction
    decay: DecayFunction
    weight: float
    filter: Query
    def __init__(self, field_value_factor: _Optional[_Union[FieldValueFactorFunction, _Mapping]] = ..., random: _Optional[_Union[RandomScoreFunction, _Mapping]] = ..., decay: _Optional[_Union[DecayFunction, _Mapping]] = ..., weight: _Optional[float] = ..., filter: _Optional[_Union[Query, _Mapping]] = ...) -> None: ...

class FieldValueFactorFunction(_message.Message):
    __slots__ = ("field_name", "factor", "modifier", "missing")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    MODIFIER_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    factor: float
    modifier: FunctionModifier
    missing: float
    def __init__(self, field_name: _Optional[str] = ..., factor: _Optional[float] = ..., modifier: _Optional[_Union[FunctionModifier, str]] = ..., missing: _Optional[float] = ...) -> None: ...

class RandomScoreFunction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DecayFunction(_message.Message):
    __slots__ = ("field_name", "math_function", "param_type", "param", "decay", "multi_value_mode")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    MATH_FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PARAM_TYPE_FIELD_NUMBER: _ClassVar[int]
    PARAM_FIELD_NUMBER: _ClassVar[int]
    DECAY_FIELD_NUMBER: _ClassVar[int]
    MULTI_VALUE_MODE_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    math_function: DecayMathFunction
    param_type: DecayFuncParamType
    param: bytes
    decay: float
    multi_value_mode: MultiValueMode
    def __init__(self, field_name: _Optional[str] = ..., math_function: _Optional[_Union[DecayMathFunction, str]] = ..., param_type: _Optional[_Union[DecayFuncParamType, str]] = ..., param: _Optional[bytes] = ..., decay: _Optional[float] = ..., multi_value_mode: _Optional[_Union[MultiValueMode, str]] = ...) -> None: ...

class DecayFuncDateParam(_message.Message):
    __slots__ = ("origin_long", "origin_string", "scale", "offset")
    ORIGIN_LONG_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_STRING_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    origin_long: int
    origin_string: str
    scale: DateTimeValue
    offset: DateTimeValue
    def __init__(self, origin_long: _Optional[int] = ..., origin_string: _Optional[str] = ..., scale: _Optional[_Union[DateTimeValue, _Mapping]] = ..., offset: _Optional[_Union[DateTimeValue, _Mapping]] = ...) -> None: ...

class DecayFuncNumericParam(_message.Message):
    __slots__ = ("origin", "scale", "offset")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    origin: float
    scale: float
    offset: float
    def __init__(self, origin: _Optional[float] = ..., scale: _Optional[float] = ..., offset: _Optional[float] = ...) -> None: ...

class DecayFuncGeoParam(_message.Message):
    __slots__ = ("origin", "scale", "offset")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    origin: str
    scale: float
    offset: float
    def __init__(self, origin: _Optional[str] = ..., scale: _Optional[float] = ..., offset: _Optional[float] = ...) -> None: ...

class DisMaxQuery(_message.Message):
    __slots__ = ("queries", "tie_breaker", "weight")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    TIE_BREAKER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedCompositeFieldContainer[Query]
    tie_breaker: float
    weight: float
    def __init__(self, queries: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., tie_breaker: _Optional[float] = ..., weight: _Optional[float] = ...) -> None: ...

class NestedQuery(_message.Message):
    __slots__ = ("path", "query", "score_mode", "weight", "inner_hits")
    PATH_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SCORE_MODE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    INNER_HITS_FIELD_NUMBER: _ClassVar[int]
    path: str
    query: Query
    score_mode: ScoreMode
    weight: float
    inner_hits: InnerHits
    def __init__(self, path: _Optional[str] = ..., query: _Optional[_Union[Query, _Mapping]] = ..., score_mode: _Optional[_Union[ScoreMode, str]] = ..., weight: _Optional[float] = ..., inner_hits: _Optional[_Union[InnerHits, _Mapping]] = ...) -> None: ...

class InnerHits(_message.Message):
    __slots__ = ("sort", "offset", "limit", "highlight")
    SORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    HIGHLIGHT_FIELD_NUMBER: _ClassVar[int]
    sort: Sort
    offset: int
    limit: int
    highlight: Highlight
    def __init__(self, sort: _Optional[_Union[Sort, _Mapping]] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., highlight: _Optional[_Union[Highlight, _Mapping]] = ...) -> None: ...

class GeoBoundingBoxQuery(_message.Message):
    __slots__ = ("field_name", "top_left", "bottom_right")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TOP_LEFT_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_RIGHT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    top_left: str
    bottom_right: str
    def __init__(self, field_name: _Optional[str] = ..., top_left: _Optional[str] = ..., bottom_right: _Optional[str] = ...) -> None: ...

class GeoDistanceQuery(_message.Message):
    __slots__ = ("field_name", "center_point", "distance")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    CENTER_POINT_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    center_point: str
    distance: float
    def __init__(self, field_name: _Optional[str] = ..., center_point: _Optional[str] = ..., distance: _Optional[float] = ...) -> None: ...

class GeoPolygonQuery(_message.Message):
    __slots__ = ("field_name", "points")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    points: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, field_name: _Optional[str] = ..., points: _Optional[_Iterable[str]] = ...) -> None: ...

class ExistsQuery(_message.Message):
    __slots__ = ("field_name",)
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    def __init__(self, field_name: _Optional[str] = ...) -> None: ...

class KnnVectorQuery(_message.Message):
    __slots__ = ("field_name", "top_k", "float32_query_vector", "filter", "weight", "min_score", "num_candidates")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    FLOAT32_QUERY_VECTOR_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    NUM_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    top_k: int
    float32_query_vector: _containers.RepeatedScalarFieldContainer[float]
    filter: Query
    weight: float
    min_score: float
    num_candidates: int
    def __init__(self, field_name: _Optional[str] = ..., top_k: _Optional[int] = ..., float32_query_vector: _Optional[_Iterable[float]] = ..., filter: _Optional[_Union[Query, _Mapping]] = ..., weight: _Optional[float] = ..., min_score: _Optional[float] = ..., num_candidates: _Optional[int] = ...) -> None: ...

class NestedFilter(_message.Message):
    __slots__ = ("path", "filter")
    PATH_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    path: str
    filter: Query
    def __init__(self, path: _Optional[str] = ..., filter: _Optional[_Union[Query, _Mapping]] = ...) -> None: ...

class FieldSort(_message.Message):
    __slots__ = ("field_name", "order", "mode", "nested_filter", "missing_value", "missing_field")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    NESTED_FILTER_FIELD_NUMBER: _ClassVar[int]
    MISSING_VALUE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    order: SortOrder
    mode: SortMode
    nested_filter: NestedFilter
    missing_value: bytes
    missing_field: str
    def __init__(self, field_name: _Optional[str] = ..., order: _Optional[_Union[SortOrder, str]] = ..., mode: _Optional[_Union[SortMode, str]] = ..., nested_filter: _Optional[_Union[NestedFilter, _Mapping]] = ..., missing_value: _Optional[bytes] = ..., missing_field: _Optional[str] = ...) -> None: ...

class GeoDistanceSort(_message.Message):
    __slots__ = ("field_name", "points", "order", "mode", "distance_type", "nested_filter")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    NESTED_FILTER_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    points: _containers.RepeatedScalarFieldContainer[str]
    order: SortOrder
    mode: SortMode
    distance_type: GeoDistanceType
    nested_filter: NestedFilter
    def __init__(self, field_name: _Optional[str] = ..., points: _Optional[_Iterable[str]] = ..., order: _Optional[_Union[SortOrder, str]] = ..., mode: _Optional[_Union[SortMode, str]] = ..., distance_type: _Optional[_Union[GeoDistanceType, str]] = ..., nested_filter: _Optional[_Union[NestedFilter, _Mapping]] = ...) -> None: ...

class ScoreSort(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: SortOrder
    def __init__(self, order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class PrimaryKeySort(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: SortOrder
    def __init__(self, order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class DocSort(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: SortOrder
    def __init__(self, order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class Sorter(_message.Message):
    __slots__ = ("field_sort", "geo_distance_sort", "score_sort", "pk_sort", "doc_sort")
    FIELD_SORT_FIELD_NUMBER: _ClassVar[int]
    GEO_DISTANCE_SORT_FIELD_NUMBER: _ClassVar[int]
    SCORE_SORT_FIELD_NUMBER: _ClassVar[int]
    PK_SORT_FIELD_NUMBER: _ClassVar[int]
    DOC_SORT_FIELD_NUMBER: _ClassVar[int]
    field_sort: FieldSort
    geo_distance_sort: GeoDistanceSort
    score_sort: ScoreSort
    pk_sort: PrimaryKeySort
    doc_sort: DocSort
    def __init__(self, field_sort: _Optional[_Union[FieldSort, _Mapping]] = ..., geo_distance_sort: _Optional[_Union[GeoDistanceSort, _Mapping]] = ..., score_sort: _Optional[_Union[ScoreSort, _Mapping]] = ..., pk_sort: _Optional[_Union[PrimaryKeySort, _Mapping]] = ..., doc_sort: _Optional[_Union[DocSort, _Mapping]] = ...) -> None: ...

class Sort(_message.Message):
    __slots__ = ("sorter", "disable_default_pk_sorter")
    SORTER_FIELD_NUMBER: _ClassVar[int]
    DISABLE_DEFAULT_PK_SORTER_FIELD_NUMBER: _ClassVar[int]
    sorter: _containers.RepeatedCompositeFieldContainer[Sorter]
    disable_default_pk_sorter: bool
    def __init__(self, sorter: _Optional[_Iterable[_Union[Sorter, _Mapping]]] = ..., disable_default_pk_sorter: bool = ...) -> None: ...

class Collapse(_message.Message):
    __slots__ = ("field_name",)
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    def __init__(self, field_name: _Optional[str] = ...) -> None: ...

class HighlightParameter(_message.Message):
    __slots__ = ("field_name", "number_of_fragments", "fragment_size", "pre_tag", "post_tag", "fragments_order")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_OF_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_SIZE_FIELD_NUMBER: _ClassVar[int]
    PRE_TAG_FIELD_NUMBER: _ClassVar[int]
    POST_TAG_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_ORDER_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    number_of_fragments: int
    fragment_size: int
    pre_tag: str
    post_tag: str
    fragments_order: HighlightFragmentOrder
    def __init__(self, field_name: _Optional[str] = ..., number_of_fragments: _Optional[int] = ..., fragment_size: _Optional[int] = ..., pre_tag: _Optional[str] = ..., post_tag: _Optional[str] = ..., fragments_order: _Optional[_Union[HighlightFragmentOrder, str]] = ...) -> None: ...

class Highlight(_message.Message):
    __slots__ = ("highlight_parameters", "highlight_encoder")
    HIGHLIGHT_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    HIGHLIGHT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    highlight_parameters: _containers.RepeatedCompositeFieldContainer[HighlightParameter]
    highlight_encoder: HighlightEncoder
    def __init__(self, highlight_parameters: _Optional[_Iterable[_Union[HighlightParameter, _Mapping]]] = ..., highlight_encoder: _Optional[_Union[HighlightEncoder, str]] = ...) -> None: ...

class SearchFilter(_message.Message):
    __slots__ = ("query",)
    QUERY_FIELD_NUMBER: _ClassVar[int]
    query: Query
    def __init__(self, query: _Optional[_Union[Query, _Mapping]] = ...) -> None: ...

class SearchQuery(_message.Message):
    __slots__ = ("offset", "limit", "query", "collapse", "sort", "get_total_count", "token", "aggs", "group_bys", "highlight", "track_total_count", "filter")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    GET_TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGGS_FIELD_NUMBER: _ClassVar[int]
    GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    HIGHLIGHT_FIELD_NUMBER: _ClassVar[int]
    TRACK_TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    offset: int
    limit: int
    query: Query
    collapse: Collapse
    sort: Sort
    get_total_count: bool
    token: bytes
    aggs: Aggregations
    group_bys: GroupBys
    highlight: Highlight
    track_total_count: int
    filter: SearchFilter
    def __init__(self, offset: _Optional[int] = ..., limit: _Optional[int] = ..., query: _Optional[_Union[Query, _Mapping]] = ..., collapse: _Optional[_Union[Collapse, _Mapping]] = ..., sort: _Optional[_Union[Sort, _Mapping]] = ..., get_total_count: bool = ..., token: _Optional[bytes] = ..., aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., group_bys: _Optional[_Union[GroupBys, _Mapping]] = ..., highlight: _Optional[_Union[Highlight, _Mapping]] = ..., track_total_count: _Optional[int] = ..., filter: _Optional[_Union[SearchFilter, _Mapping]] = ...) -> None: ...

class ColumnsToGet(_message.Message):
    __slots__ = ("return_type", "column_names")
    RETURN_TYPE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_NAMES_FIELD_NUMBER: _ClassVar[int]
    return_type: ColumnReturnType
    column_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, return_type: _Optional[_Union[ColumnReturnType, str]] = ..., column_names: _Optional[_Iterable[str]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("table_name", "index_name", "columns_to_get", "search_query", "routing_values", "timeout_ms")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_TO_GET_FIELD_NUMBER: _ClassVar[int]
    SEARCH_QUERY_FIELD_NUMBER: _ClassVar[int]
    ROUTING_VALUES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    columns_to_get: ColumnsToGet
    search_query: bytes
    routing_values: _containers.RepeatedScalarFieldContainer[bytes]
    timeout_ms: int
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., columns_to_get: _Optional[_Union[ColumnsToGet, _Mapping]] = ..., search_query: _Optional[bytes] = ..., routing_values: _Optional[_Iterable[bytes]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class HighlightField(_message.Message):
    __slots__ = ("field_name", "field_fragments")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    FIELD_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    field_fragments: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, field_name: _Optional[str] = ..., field_fragments: _Optional[_Iterable[str]] = ...) -> None: ...

class HighlightResult(_message.Message):
    __slots__ = ("highlight_fields",)
    HIGHLIGHT_FIELDS_FIELD_NUMBER: _ClassVar[int]
    highlight_fields: _containers.RepeatedCompositeFieldContainer[HighlightField]
    def __init__(self, highlight_fields: _Optional[_Iterable[_Union[HighlightField, _Mapping]]] = ...) -> None: ...

class SearchInnerHit(_message.Message):
    __slots__ = ("path", "search_hits")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SEARCH_HITS_FIELD_NUMBER: _ClassVar[int]
    path: str
    search_hits: _containers.RepeatedCompositeFieldContainer[SearchHit]
    def __init__(self, path: _Optional[str] = ..., search_hits: _Optional[_Iterable[_Union[SearchHit, _Mapping]]] = ...) -> None: ...

class SearchHit(_message.Message):
    __slots__ = ("score", "highlight_result", "search_inner_hits", "nested_doc_offset")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    HIGHLIGHT_RESULT_FIELD_NUMBER: _ClassVar[int]
    SEARCH_INNER_HITS_FIELD_NUMBER: _ClassVar[int]
    NESTED_DOC_OFFSET_FIELD_NUMBER: _ClassVar[int]
    score: float
    highlight_result: HighlightResult
    search_inner_hits: _containers.RepeatedCompositeFieldContainer[SearchInnerHit]
    nested_doc_offset: int
    def __init__(self, score: _Optional[float] = ..., highlight_result: _Optional[_Union[HighlightResult, _Mapping]] = ..., search_inner_hits: _Optional[_Iterable[_Union[SearchInnerHit, _Mapping]]] = ..., nested_doc_offset: _Optional[int] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("total_hits", "rows", "is_all_succeeded", "search_hits", "next_token", "aggs", "group_bys")
    TOTAL_HITS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    IS_ALL_SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    SEARCH_HITS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGGS_FIELD_NUMBER: _ClassVar[int]
    GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    total_hits: int
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    is_all_succeeded: bool
    search_hits: _containers.RepeatedCompositeFieldContainer[SearchHit]
    next_token: bytes
    aggs: bytes
    group_bys: bytes
    def __init__(self, total_hits: _Optional[int] = ..., rows: _Optional[_Iterable[bytes]] = ..., is_all_succeeded: bool = ..., search_hits: _Optional[_Iterable[_Union[SearchHit, _Mapping]]] = ..., next_token: _Optional[bytes] = ..., aggs: _Optional[bytes] = ..., group_bys: _Optional[bytes] = ...) -> None: ...

class SearchIndexSplitsOptions(_message.Message):
    __slots__ = ("index_name",)
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    index_name: str
    def __init__(self, index_name: _Optional[str] = ...) -> None: ...

class ComputeSplitsRequest(_message.Message):
    __slots__ = ("table_name", "search_index_splits_options")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    SEARCH_INDEX_SPLITS_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    search_index_splits_options: SearchIndexSplitsOptions
    def __init__(self, table_name: _Optional[str] = ..., search_index_splits_options: _Optional[_Union[SearchIndexSplitsOptions, _Mapping]] = ...) -> None: ...

class ComputeSplitsResponse(_message.Message):
    __slots__ = ("session_id", "splits_size")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SPLITS_SIZE_FIELD_NUMBER: _ClassVar[int]
    session_id: bytes
    splits_size: int
    def __init__(self, session_id: _Optional[bytes] = ..., splits_size: _Optional[int] = ...) -> None: ...

class ScanQuery(_message.Message):
    __slots__ = ("query", "limit", "alive_time", "token", "current_parallel_id", "max_parallel")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ALIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CURRENT_PARALLEL_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    query: Query
    limit: int
    alive_time: int
    token: bytes
    current_parallel_id: int
    max_parallel: int
    def __init__(self, query: _Optional[_Union[Query, _Mapping]] = ..., limit: _Optional[int] = ..., alive_time: _Optional[int] = ..., token: _Optional[bytes] = ..., current_parallel_id: _Optional[int] = ..., max_parallel: _Optional[int] = ...) -> None: ...

class ParallelScanRequest(_message.Message):
    __slots__ = ("table_name", "index_name", "columns_to_get", "session_id", "scan_query", "timeout_ms")
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_TO_GET_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SCAN_QUERY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    table_name: str
    index_name: str
    columns_to_get: ColumnsToGet
    session_id: bytes
    scan_query: bytes
    timeout_ms: int
    def __init__(self, table_name: _Optional[str] = ..., index_name: _Optional[str] = ..., columns_to_get: _Optional[_Union[ColumnsToGet, _Mapping]] = ..., session_id: _Optional[bytes] = ..., scan_query: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class ParallelScanResponse(_message.Message):
    __slots__ = ("rows", "next_token")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    next_token: bytes
    def __init__(self, rows: _Optional[_Iterable[bytes]] = ..., next_token: _Optional[bytes] = ...) -> None: ...

class Aggregation(_message.Message):
    __slots__ = ("name", "type", "body")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: AggregationType
    body: bytes
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[AggregationType, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class Aggregations(_message.Message):
    __slots__ = ("aggs",)
    AGGS_FIELD_NUMBER: _ClassVar[int]
    aggs: _containers.RepeatedCompositeFieldContainer[Aggregation]
    def __init__(self, aggs: _Optional[_Iterable[_Union[Aggregation, _Mapping]]] = ...) -> None: ...

class FieldAggregation(_message.Message):
    __slots__ = ("field_name", "missing")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    missing: bytes
    def __init__(self, field_name: _Optional[str] = ..., missing: _Optional[bytes] = ...) -> None: ...

class TopRowsAggregation(_message.Message):
    __slots__ = ("limit", "sort")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    sort: Sort
    def __init__(self, limit: _Optional[int] = ..., sort: _Optional[_Union[Sort, _Mapping]] = ...) -> None: ...

class PercentilesAggregation(_message.Message):
    __slots__ = ("field_name", "percentiles", "missing_value")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    PERCENTILES_FIELD_NUMBER: _ClassVar[int]
    MISSING_VALUE_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    percentiles: _containers.RepeatedScalarFieldContainer[float]
    missing_value: bytes
    def __init__(self, field_name: _Optional[str] = ..., percentiles: _Optional[_Iterable[float]] = ..., missing_value: _Optional[bytes] = ...) -> None: ...

class DoubleResult(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: float
    def __init__(self, value: _Optional[float] = ...) -> None: ...

class LongResult(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: int
    def __init__(self, value: _Optional[int] = ...) -> None: ...

class TopRowsResult(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, rows: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PercentilesItem(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: float
    value: bytes
    def __init__(self, key: _Optional[float] = ..., value: _Optional[bytes] = ...) -> None: ...

class PercentilesResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[PercentilesItem]
    def __init__(self, items: _Optional[_Iterable[_Union[PercentilesItem, _Mapping]]] = ...) -> None: ...

class AggregationResult(_message.Message):
    __slots__ = ("name", "type", "agg_result")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    AGG_RESULT_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: AggregationType
    agg_result: bytes
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[AggregationType, str]] = ..., agg_result: _Optional[bytes] = ...) -> None: ...

class AggregationsResult(_message.Message):
    __slots__ = ("agg_results",)
    AGG_RESULTS_FIELD_NUMBER: _ClassVar[int]
    agg_results: _containers.RepeatedCompositeFieldContainer[AggregationResult]
    def __init__(self, agg_results: _Optional[_Iterable[_Union[AggregationResult, _Mapping]]] = ...) -> None: ...

class GroupBy(_message.Message):
    __slots__ = ("name", "type", "body")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: GroupByType
    body: bytes
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[GroupByType, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class GroupBys(_message.Message):
    __slots__ = ("group_bys",)
    GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    group_bys: _containers.RepeatedCompositeFieldContainer[GroupBy]
    def __init__(self, group_bys: _Optional[_Iterable[_Union[GroupBy, _Mapping]]] = ...) -> None: ...

class GroupKeySort(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: SortOrder
    def __init__(self, order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class RowCountSort(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: SortOrder
    def __init__(self, order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class SubAggSort(_message.Message):
    __slots__ = ("sub_agg_name", "order")
    SUB_AGG_NAME_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    sub_agg_name: str
    order: SortOrder
    def __init__(self, sub_agg_name: _Optional[str] = ..., order: _Optional[_Union[SortOrder, str]] = ...) -> None: ...

class GroupBySorter(_message.Message):
    __slots__ = ("group_key_sort", "row_count_sort", "sub_agg_sort")
    GROUP_KEY_SORT_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_SORT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGG_SORT_FIELD_NUMBER: _ClassVar[int]
    group_key_sort: GroupKeySort
    row_count_sort: RowCountSort
    sub_agg_sort: SubAggSort
    def __init__(self, group_key_sort: _Optional[_Union[GroupKeySort, _Mapping]] = ..., row_count_sort: _Optional[_Union[RowCountSort, _Mapping]] = ..., sub_agg_sort: _Optional[_Union[SubAggSort, _Mapping]] = ...) -> None: ...

class GroupBySort(_message.Message):
    __slots__ = ("sorters",)
    SORTERS_FIELD_NUMBER: _ClassVar[int]
    sorters: _containers.RepeatedCompositeFieldContainer[GroupBySorter]
    def __init__(self, sorters: _Optional[_Iterable[_Union[GroupBySorter, _Mapping]]] = ...) -> None: ...

class GroupByField(_message.Message):
    __slots__ = ("field_name", "size", "sort", "sub_aggs", "sub_group_bys", "min_doc_count")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    MIN_DOC_COUNT_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    size: int
    sort: GroupBySort
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    min_doc_count: int
    def __init__(self, field_name: _Optional[str] = ..., size: _Optional[int] = ..., sort: _Optional[_Union[GroupBySort, _Mapping]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ..., min_doc_count: _Optional[int] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("begin", "end")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    begin: float
    end: float
    def __init__(self, begin: _Optional[float] = ..., end: _Optional[float] = ...) -> None: ...

class GroupByRange(_message.Message):
    __slots__ = ("field_name", "ranges", "sub_aggs", "sub_group_bys")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    def __init__(self, field_name: _Optional[str] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ...) -> None: ...

class GroupByFilter(_message.Message):
    __slots__ = ("filters", "sub_aggs", "sub_group_bys")
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[Query]
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    def __init__(self, filters: _Optional[_Iterable[_Union[Query, _Mapping]]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ...) -> None: ...

class GeoPoint(_message.Message):
    __slots__ = ("lat", "lon")
    LAT_FIELD_NUMBER: _ClassVar[int]
    LON_FIELD_NUMBER: _ClassVar[int]
    lat: float
    lon: float
    def __init__(self, lat: _Optional[float] = ..., lon: _Optional[float] = ...) -> None: ...

class GroupByGeoDistance(_message.Message):
    __slots__ = ("field_name", "origin", "ranges", "sub_aggs", "sub_group_bys")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    origin: GeoPoint
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    def __init__(self, field_name: _Optional[str] = ..., origin: _Optional[_Union[GeoPoint, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ...) -> None: ...

class FieldRange(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: bytes
    max: bytes
    def __init__(self, min: _Optional[bytes] = ..., max: _Optional[bytes] = ...) -> None: ...

class GroupByHistogram(_message.Message):
    __slots__ = ("field_name", "interval", "missing_value", "min_doc_count", "sort", "field_range", "sub_aggs", "sub_group_bys", "offset")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MISSING_VALUE_FIELD_NUMBER: _ClassVar[int]
    MIN_DOC_COUNT_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    FIELD_RANGE_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    interval: bytes
    missing_value: bytes
    min_doc_count: int
    sort: GroupBySort
    field_range: FieldRange
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    offset: bytes
    def __init__(self, field_name: _Optional[str] = ..., interval: _Optional[bytes] = ..., missing_value: _Optional[bytes] = ..., min_doc_count: _Optional[int] = ..., sort: _Optional[_Union[GroupBySort, _Mapping]] = ..., field_range: _Optional[_Union[FieldRange, _Mapping]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ..., offset: _Optional[bytes] = ...) -> None: ...

class GroupByDateHistogram(_message.Message):
    __slots__ = ("field_name", "interval", "field_range", "missing", "min_doc_count", "time_zone", "sort", "sub_aggs", "sub_group_bys", "offset")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    FIELD_RANGE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    MIN_DOC_COUNT_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    interval: DateTimeValue
    field_range: FieldRange
    missing: bytes
    min_doc_count: int
    time_zone: str
    sort: GroupBySort
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    offset: DateTimeValue
    def __init__(self, field_name: _Optional[str] = ..., interval: _Optional[_Union[DateTimeValue, _Mapping]] = ..., field_range: _Optional[_Union[FieldRange, _Mapping]] = ..., missing: _Optional[bytes] = ..., min_doc_count: _Optional[int] = ..., time_zone: _Optional[str] = ..., sort: _Optional[_Union[GroupBySort, _Mapping]] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ..., offset: _Optional[_Union[DateTimeValue, _Mapping]] = ...) -> None: ...

class GroupByGeoGrid(_message.Message):
    __slots__ = ("field_name", "precision", "size", "sub_aggs", "sub_group_bys")
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    field_name: str
    precision: int
    size: int
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    def __init__(self, field_name: _Optional[str] = ..., precision: _Optional[int] = ..., size: _Optional[int] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ...) -> None: ...

class GroupByComposite(_message.Message):
    __slots__ = ("sources", "size", "sub_aggs", "sub_group_bys", "next_token", "suggested_size")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_SIZE_FIELD_NUMBER: _ClassVar[int]
    sources: GroupBys
    size: int
    sub_aggs: Aggregations
    sub_group_bys: GroupBys
    next_token: str
    suggested_size: int
    def __init__(self, sources: _Optional[_Union[GroupBys, _Mapping]] = ..., size: _Optional[int] = ..., sub_aggs: _Optional[_Union[Aggregations, _Mapping]] = ..., sub_group_bys: _Optional[_Union[GroupBys, _Mapping]] = ..., next_token: _Optional[str] = ..., suggested_size: _Optional[int] = ...) -> None: ...

class GroupByFieldResultItem(_message.Message):
    __slots__ = ("key", "row_count", "sub_aggs_result", "sub_group_bys_result")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    key: str
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, key: _Optional[str] = ..., row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByFieldResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByFieldResultItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByFieldResultItem, _Mapping]]] = ...) -> None: ...

class GroupByRangeResultItem(_message.Message):
    __slots__ = ("range_from", "range_to", "row_count", "sub_aggs_result", "sub_group_bys_result")
    RANGE_FROM_FIELD_NUMBER: _ClassVar[int]
    RANGE_TO_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    range_from: float
    range_to: float
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, range_from: _Optional[float] = ..., range_to: _Optional[float] = ..., row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByRangeResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByRangeResultItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByRangeResultItem, _Mapping]]] = ...) -> None: ...

class GroupByFilterResultItem(_message.Message):
    __slots__ = ("row_count", "sub_aggs_result", "sub_group_bys_result")
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByFilterResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByFilterResultItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByFilterResultItem, _Mapping]]] = ...) -> None: ...

class GroupByHistogramItem(_message.Message):
    __slots__ = ("key", "value", "sub_aggs_result", "sub_group_bys_result")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByHistogramResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByHistogramItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByHistogramItem, _Mapping]]] = ...) -> None: ...

class GroupByDateHistogramItem(_message.Message):
    __slots__ = ("timestamp", "row_count", "sub_aggs_result", "sub_group_bys_result")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, timestamp: _Optional[int] = ..., row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByDateHistogramResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByDateHistogramItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByDateHistogramItem, _Mapping]]] = ...) -> None: ...

class GeoGrid(_message.Message):
    __slots__ = ("top_left", "bottom_right")
    TOP_LEFT_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_RIGHT_FIELD_NUMBER: _ClassVar[int]
    top_left: GeoPoint
    bottom_right: GeoPoint
    def __init__(self, top_left: _Optional[_Union[GeoPoint, _Mapping]] = ..., bottom_right: _Optional[_Union[GeoPoint, _Mapping]] = ...) -> None: ...

class GroupByGeoGridResultItem(_message.Message):
    __slots__ = ("key", "geo_grid", "row_count", "sub_aggs_result", "sub_group_bys_result")
    KEY_FIELD_NUMBER: _ClassVar[int]
    GEO_GRID_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    key: str
    geo_grid: GeoGrid
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    def __init__(self, key: _Optional[str] = ..., geo_grid: _Optional[_Union[GeoGrid, _Mapping]] = ..., row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ...) -> None: ...

class GroupByGeoGridResult(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByGeoGridResultItem]
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByGeoGridResultItem, _Mapping]]] = ...) -> None: ...

class GroupByCompositeResultItem(_message.Message):
    __slots__ = ("keys", "row_count", "sub_aggs_result", "sub_group_bys_result", "is_null_keys")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUB_AGGS_RESULT_FIELD_NUMBER: _ClassVar[int]
    SUB_GROUP_BYS_RESULT_FIELD_NUMBER: _ClassVar[int]
    IS_NULL_KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    row_count: int
    sub_aggs_result: AggregationsResult
    sub_group_bys_result: GroupBysResult
    is_null_keys: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., row_count: _Optional[int] = ..., sub_aggs_result: _Optional[_Union[AggregationsResult, _Mapping]] = ..., sub_group_bys_result: _Optional[_Union[GroupBysResult, _Mapping]] = ..., is_null_keys: _Optional[_Iterable[bool]] = ...) -> None: ...

class GroupByCompositeResult(_message.Message):
    __slots__ = ("items", "source_group_by_names", "next_token")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_GROUP_BY_NAMES_FIELD_NUMBER: _ClassVar[int]
    NEXT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GroupByCompositeResultItem]
    source_group_by_names: _containers.RepeatedScalarFieldContainer[str]
    next_token: str
    def __init__(self, items: _Optional[_Iterable[_Union[GroupByCompositeResultItem, _Mapping]]] = ..., source_group_by_names: _Optional[_Iterable[str]] = ..., next_token: _Optional[str] = ...) -> None: ...

class GroupByResult(_message.Message):
    __slots__ = ("name", "type", "group_by_result")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_RESULT_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: GroupByType
    group_by_result: bytes
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[GroupByType, str]] = ..., group_by_result: _Optional[bytes] = ...) -> None: ...

class GroupBysResult(_message.Message):
    __slots__ = ("group_by_results",)
    GROUP_BY_RESULTS_FIELD_NUMBER: _ClassVar[int]
    group_by_results: _containers.RepeatedCompositeFieldContainer[GroupByResult]
    def __init__(self, group_by_results: _Optional[_Iterable[_Union[GroupByResult, _Mapping]]] = ...) -> None: ...
