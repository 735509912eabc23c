"""An engine on each database, as for the tests of the engine."""

from __future__ import annotations

from tests.gateway.engine.conftest import *  # noqa: F403
