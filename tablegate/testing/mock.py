"""`mock_aws`: the decorator and context manager of moto, with a server of tablegate behind it.

    from tablegate.testing import mock_aws

Only DynamoDB and its streams are served. Other services of AWS are not affected.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import unittest
from collections.abc import Callable, Mapping
from typing import Any

from tablegate.testing.process_server import PROCESS_SERVER
from tablegate.testing.server import ELSEWHERE, Server, environment_set

# The account of moto.
_ACCOUNT = "123456789012"
# Each region has its own tables, and all keys are of one account, as with moto.
_SETTINGS = {"namespaces": "separate", "aws_account": _ACCOUNT}
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class AwsMock:
    """DynamoDB for a block, a function, a test class, or from `start` to `stop`. The outermost mock begins empty."""

    # All mocks of the process share these.
    _lock = threading.RLock()
    _active = 0
    _environment = contextlib.ExitStack()

    @property
    def server(self) -> Server:
        """The server behind the mock, for its control API."""
        return PROCESS_SERVER.current or PROCESS_SERVER.begin_mock(_SETTINGS)

    def start(self, reset: bool = True) -> None:
        """Set the environment variables for SDKs, and empty the server unless another mock or the fixture uses it."""
        with AwsMock._lock:
            if not AwsMock._active:
                server = PROCESS_SERVER.begin_mock(_SETTINGS) if reset else self.server
                AwsMock._environment.enter_context(environment_set(_variables(server)))
            AwsMock._active += 1

    def stop(self) -> None:
        """Restore the environment variables if no other mock is active."""
        with AwsMock._lock:
            if not AwsMock._active:
                raise RuntimeError("Called stop() before start().")
            AwsMock._active -= 1
            if not AwsMock._active:
                AwsMock._environment.close()

    def __enter__(self) -> AwsMock:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, decorated: Any) -> Any:
        if isinstance(decorated, type):
            return self._with_class(decorated)
        return self._with_function(decorated)

    def _with_function(self, function: Callable[..., Any], reset: bool = True) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*arguments: Any, **named: Any) -> Any:
                self.start(reset)
                try:
                    return await function(*arguments, **named)
                finally:
                    self.stop()

            return run_async

        @functools.wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            self.start(reset)
            try:
                return function(*arguments, **named)
            finally:
                self.stop()

        return run

    def _with_class(self, case: Any) -> Any:
        """Give each test of a class an empty server, from its set-up on."""
        if issubclass(case, unittest.TestCase):
            case.run = self._with_function(case.run)
            return case
        has_set_up = hasattr(case, "setup_method")
        for name, member in [*vars(case).items()]:
            if inspect.isfunction(member) and not name.startswith("_"):
                reset = name == "setup_method" or (name.startswith("test") and not has_set_up)
                setattr(case, name, self._with_function(member, reset))
        return case


def mock_aws(decorated: Any = None, *, config: Mapping[str, Any] | None = None) -> Any:
    """Return a mock, or `decorated` with a mock around each call. `config` is accepted for moto's sake, without effect."""
    mock = AwsMock()
    return mock if decorated is None else mock(decorated)


def _variables(server: Server) -> dict[str, str | None]:
    """Return variables as moto sets them: its account, and no region, so that only the caller chooses one."""
    wanted: dict[str, str | None] = {**dict.fromkeys(ELSEWHERE), **server.environment()}
    wanted["AWS_ACCESS_KEY_ID"] = _ACCOUNT
    for name in _REGIONS:
        del wanted[name]
    return wanted
