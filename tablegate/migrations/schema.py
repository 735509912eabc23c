"""The whole SQL schema: the tables of the core, and those of capabilities in their modules with names that end in `_schema`."""

from __future__ import annotations

import importlib
import pkgutil

from sqlalchemy import MetaData

from tablegate.gateway import features
from tablegate.gateway.store.sql import core_schema

PARTS = (
    core_schema,
    *(
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(features.__path__, f"{features.__name__}.")
        if module.name.endswith("_schema")
    ),
)
"""The modules with SQL tables. Each adds its own to the metadata that they share."""
metadata: MetaData = core_schema.metadata
"""All tables."""
