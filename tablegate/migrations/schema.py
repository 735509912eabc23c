"""The whole SQL schema: the tables of all modules of the gateway with names that end in `_schema`."""

from __future__ import annotations

import importlib
import pkgutil

from sqlalchemy import MetaData

from tablegate import gateway

PARTS = tuple(
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(gateway.__path__, f"{gateway.__name__}.")
    if module.name.endswith("_schema")
)
"""The modules with SQL tables, by name. Each adds its own to the metadata that they share."""
metadata: MetaData = PARTS[0].metadata
"""All tables."""
