"""`Server`: `tablegate serve` as a child process that ends with this one, even if this one is killed.

The server stops when its standard input ends (`--stop-with-stdin`). Only this process has the other end of that pipe.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from tablegate.testing.control import ControlClient

ACCESS_KEY = SECRET_KEY = "tablegate"
REGION = "us-east-1"
INSTANCE = "tablegate"
AZURE_ACCOUNT = "devstoreaccount1"
# Published by Microsoft as the key of every storage emulator.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # gitleaks:allow

# The secret key of strict servers. A random one could not read the credentials in a database of an earlier run.
_SERVER_KEY = "public, as all keys of servers for tests"  # gitleaks:allow
_STOP_S = 10.0
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class ServerFailed(Exception):
    """The server did not start. The text is its output."""


class Server:
    """A server for tests: a context manager, or a decorator of functions and unittest classes.

    `settings`: those of `tablegate serve` (docs/reference/settings.md). `auth="strict"` is `--auth strict`. Without a
    `database`, all data is in memory. `start_from`: a file from `ControlClient.export`.

    As a decorator it also sets `environment()` while the function runs. A decorated unittest.TestCase has one server,
    which is emptied before each test.
    """

    def __init__(
        self, *, start_from: str | Path | None = None, start_seconds: float = 60.0, **settings: Any
    ) -> None:
        self._settings = dict(settings)
        if start_from is not None:
            self._settings["from"] = start_from
        self._start_seconds = start_seconds
        self._token = secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.url = ""
        """The address of the running server."""
        self.control = ControlClient("http://localhost:0")

    # Start and stop

    def start(self) -> Server:
        """Start the server. Returns when it accepts connections. Raises ServerFailed."""
        if self._process is not None:
            raise ServerFailed("the server is already running")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tablegate", "serve", *self._flags()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._own_environment(),
        )
        assert self._process.stdout is not None
        timer = threading.Timer(self._start_seconds, self._process.kill)
        timer.start()
        try:
            self.url = self._process.stdout.readline().decode().strip()
        finally:
            timer.cancel()
        if not self.url:
            output = self.log()
            self.stop()
            raise ServerFailed(f"tablegate serve did not start: {output.strip() or 'no output'}")
        self.control = ControlClient(self.url, self._token)
        return self

    def stop(self) -> None:
        """Stop the server. Data in memory is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        self.control.close()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        if self._log is not None:
            self._log.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._log = self._folder = None
        self.url = ""

    def log(self) -> str:
        """Return the server's log so far."""
        if self._log is None:
            return ""
        # The server writes through the same open file, so its position must not change.
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    @property
    def pid(self) -> int | None:
        """The server's process id, or None if it is not running."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, decorated: Decorated) -> Decorated:
        if isinstance(decorated, type):
            return self._with_class(decorated)

        @functools.wraps(decorated)
        def run(*arguments: Any, **named: Any) -> Any:
            with self, self.set_environment():
                return decorated(*arguments, **named)

        return run  # type: ignore[return-value]

    def _with_class(self, case: Any) -> Any:
        """Give a unittest.TestCase one server for all its tests."""
        set_up_class, set_up = case.setUpClass, case.setUp

        @functools.wraps(set_up_class)
        def start(cls: Any) -> None:
            self.start()
            cls.addClassCleanup(self.stop)
            cls.enterClassContext(self.set_environment())
            set_up_class()

        @functools.wraps(set_up)
        def begin(test: Any) -> None:
            self.control.reset()
            set_up(test)

        case.setUpClass, case.setUp = classmethod(start), begin
        return case

    # SDK configuration

    def environment(self) -> dict[str, str]:
        """Return the variables that lead AWS SDKs to the server, and Azure's connection string."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.url,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AZURE_STORAGE_CONNECTION_STRING": self.azure_connection_string,
            "TABLEGATE_URL": self.url,
        }

    @contextlib.contextmanager
    def set_environment(self) -> Iterator[None]:
        """Set the variables of `environment` within the block, and unset those in ELSEWHERE."""
        with environment_set({**dict.fromkeys(ELSEWHERE), **self.environment()}):
            yield

    @property
    def azure_connection_string(self) -> str:
        """The connection string for Azure's SDKs."""
        scheme = self.url.partition(":")[0]
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY};"
            f"TableEndpoint={self.url}/{AZURE_ACCOUNT};"
        )

    def dynamodb_client(self, **options: Any) -> Any:
        """Return a DynamoDB client of boto3 with these options."""
        return self._boto3("client", options)

    def dynamodb(self, **options: Any) -> Any:
        """Return a DynamoDB resource of boto3 with these options."""
        return self._boto3("resource", options)

    def azure_tables(self, **options: Any) -> Any:
        """Return a TableServiceClient of azure-data-tables."""
        tables = importlib.import_module("azure.data.tables")
        return tables.TableServiceClient.from_connection_string(self.azure_connection_string, **options)

    def tablestore_client(self, **options: Any) -> Any:
        """Return an OTSClient of tablestore."""
        found = importlib.import_module("tablestore")
        return found.OTSClient(self.url, ACCESS_KEY, SECRET_KEY, INSTANCE, **options)

    def _boto3(self, kind: str, options: dict[str, Any]) -> Any:
        session = importlib.import_module("boto3").Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        return getattr(session, kind)("dynamodb", **{"endpoint_url": self.url, **options})

    # Process arguments

    def _flags(self) -> list[str]:
        settings: dict[str, Any] = {"port": 0, "stop_with_stdin": True, **self._settings}
        if "database" not in settings:
            settings["memory"] = True
        if settings.get("auth") == "strict" and "credentials_file" not in settings:
            settings["credentials_file"] = self._credentials()
        flags = []
        for name, value in settings.items():
            flag = name.replace("_", "-")
            if isinstance(value, bool):
                flags.append(f"--{flag}" if value else f"--no-{flag}")
            elif isinstance(value, (list, tuple)):
                flags += [f"--{flag}={each}" for each in value]
            else:
                flags.append(f"--{flag}={value}")
        return flags

    def _own_environment(self) -> dict[str, str]:
        """Return this process's environment without settings for other servers."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        made = {"TABLEGATE_ADMIN_TOKEN": self._token}
        if self._settings.get("auth") == "strict" and not {"secret_key", "secret_key_file"} & {
            *self._settings
        }:
            made["TABLEGATE_SECRET_KEY"] = _SERVER_KEY
        return {**kept, **made}

    def _credentials(self) -> str:
        """Write a credentials file with the keys of `environment` and of the clients, for strict authentication."""
        self._folder = tempfile.TemporaryDirectory(prefix="tablegate-")
        path = Path(self._folder.name, "credentials.json")
        keys = [
            {"scheme": "aws", "access_id": ACCESS_KEY, "secret": SECRET_KEY},
            {"scheme": "azure", "access_id": AZURE_ACCOUNT, "secret": AZURE_KEY},
            {"scheme": "tablestore", "access_id": ACCESS_KEY, "secret": SECRET_KEY, "place": "*"},
        ]
        path.write_text(json.dumps({"credentials": [{**key, "grants": "all"} for key in keys]}))
        return str(path)


ELSEWHERE = (
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
)
"""Variables that lead SDKs to other credentials than those of `environment`."""


@contextlib.contextmanager
def environment_set(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Set these variables within the block, and unset those without a value. boto3 makes a new default session."""
    before = {name: os.environ.get(name) for name in wanted}
    boto3 = sys.modules.get("boto3")
    session = getattr(boto3, "DEFAULT_SESSION", None)
    try:
        _set(wanted)
        if boto3 is not None:
            boto3.DEFAULT_SESSION = None  # type: ignore[attr-defined]
        yield
    finally:
        _set(before)
        if boto3 is not None:
            boto3.DEFAULT_SESSION = session  # type: ignore[attr-defined]


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
