"""The operations on tables and secondary indexes."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.tables import indexes, splits, tables
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "CreateTable": Operation(messages.CreateTableRequest, tables.create_table, Purpose((_P.CREATE,))),
    "ListTable": Operation(messages.ListTableRequest, tables.list_table, Purpose((_P.LIST,))),
    "DescribeTable": Operation(messages.DescribeTableRequest, tables.describe_table, Purpose((_P.DESCRIBE,))),
    "UpdateTable": Operation(messages.UpdateTableRequest, tables.update_table, Purpose((_P.ALTER,))),
    "DeleteTable": Operation(messages.DeleteTableRequest, tables.delete_table, Purpose((_P.DROP,))),
    "AddDefinedColumn": Operation(messages.AddDefinedColumnRequest, tables.add_defined_column, Purpose((_P.ADD_COLUMNS,))),
    "DeleteDefinedColumn": Operation(
        messages.DeleteDefinedColumnRequest, tables.delete_defined_column, Purpose((_P.DROP_COLUMNS,)),
    ),
    "ComputeSplitPointsBySize": Operation(
        messages.ComputeSplitPointsBySizeRequest, splits.compute_split_points_by_size, Purpose((_P.SPLIT,)),
    ),
    "CreateIndex": Operation(messages.CreateIndexRequest, indexes.create_index, Purpose((_P.CREATE_INDEX,))),
    "DropIndex": Operation(messages.DropIndexRequest, indexes.drop_index, Purpose((_P.DROP_INDEX,))),
    "ListTimeseriesTable": Operation(
        messages.ListTimeseriesTableRequest, indexes.list_timeseries_table, Purpose((_P.LIST_FEATURES,)),
    ),
}  # fmt: skip
