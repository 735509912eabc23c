"""Sources of settings, their precedence, and messages about invalid ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tablegate.gateway.configuration.database_urls import (
    BadDatabaseURL,
    normalise,
    sqlite_path,
    without_password,
)
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tests.support.running import ROOT
from tests.support.tables import each_row


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tablegate.toml"
    file.write_text('port = 1\nhost = "::1"\nsweep_period = 0.5\ndialects = ["dynamodb"]\n')
    settings = load(
        {"port": "3", "host": None}, {"TABLEGATE_PORT": "2", "TABLEGATE_SYNCHRONOUS": "normal"}, file
    )
    assert (settings.port, settings.host, settings.synchronous) == (3, "::1", "normal")
    assert (settings.sweep_period, settings.dialects) == (0.5, ("dynamodb",))
    assert load({}, {"TABLEGATE_CONFIG": str(file), "TABLEGATE_PORT": "2"}).port == 2


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TABLEGATE_PORT": "http"}, "TABLEGATE_PORT: 'http' is not a whole number"),
        ({"TABLEGATE_PORT": "-1"}, "must not be negative"),
        ({"TABLEGATE_PORT": "65536"}, "TABLEGATE_PORT: '65536' is more than the maximum 65535"),
        ({"TABLEGATE_AZURE_PORT": "70000"}, "TABLEGATE_AZURE_PORT: '70000' is more than the maximum 65535"),
        (
            {"TABLEGATE_METRICS_PORT": "99999999999999999999"},
            "TABLEGATE_METRICS_PORT: '99999999999999999999' is more than the maximum 65535",
        ),
        ({"TABLEGATE_WORKERS": "1025"}, "TABLEGATE_WORKERS: '1025' is more than the maximum 1024"),
        ({"TABLEGATE_AUTH": "none"}, "is not one of dev, strict"),
        ({"TABLEGATE_INSECURE": "maybe"}, "is not yes or no"),
        ({"TABLEGATE_SWEEP_PERIOD": "nan"}, "is not a number"),
        ({"TABLEGATE_TLS_CERT": "a"}, "TABLEGATE_TLS_CERT and TABLEGATE_TLS_KEY must be set together"),
        ({"TABLEGATE_WORKERS": "2", "TABLEGATE_MEMORY": "1"}, "a database in memory serves one process only"),
        ({"TABLEGATE_DATABASE": "mysql://x"}, "the URL scheme mysql: is not supported"),
        ({"TABLEGATE_CONFIG": "/nowhere.toml"}, "cannot read /nowhere.toml"),
    ],
)
def test_a_bad_setting_is_named(environment: dict[str, str], words: str) -> None:
    with pytest.raises(BadSetting) as caught:
        load({}, environment)
    assert words in str(caught.value)


def test_the_largest_number_of_workers_is_accepted() -> None:
    assert load({}, {"TABLEGATE_WORKERS": "1024"}).workers == 1024


def test_an_unknown_setting_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("prot = 1\n")
    with pytest.raises(BadSetting, match=r"prot in \S+a\.toml: there is no such setting"):
        load({}, {}, file)


def test_an_unknown_variable_is_refused() -> None:
    """A misspelt TABLEGATE_AUTH would otherwise start an open server."""
    with pytest.raises(
        BadSetting, match=r"TABLEGATE_ATUH: there is no such setting\. Did you mean TABLEGATE_AUTH"
    ):
        load({}, {"TABLEGATE_ATUH": "strict"})


def test_variables_of_the_tests_are_no_settings() -> None:
    """Servers that tests start have the environment of the tests."""
    read = re.compile(r'environ\.get\(\s*"(TABLEGATE_\w+)"|"(TABLEGATE_\w+)" (?:not )?in os\.environ')
    variables = {
        first or second
        for path in (ROOT / "tests").rglob("*.py")
        for first, second in read.findall(path.read_text())
    }
    assert "TABLEGATE_TEST_SOAK_SECONDS" in variables
    assert load({}, dict.fromkeys(variables, "1")) == load({}, {})


def test_variables_of_kubernetes_are_no_settings() -> None:
    """Kubernetes sets them for Services named tablegate and tablegate-metrics, in pods of their namespace.

    https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
    """
    of_services = {
        f"{service}_{suffix}": value
        for service in ("TABLEGATE", "TABLEGATE_METRICS")
        for suffix, value in (
            ("SERVICE_HOST", "10.0.0.11"),
            ("SERVICE_PORT", "8000"),
            ("SERVICE_PORT_HTTP", "8000"),
            ("PORT", "tcp://10.0.0.11:8000"),
            ("PORT_8000_TCP", "tcp://10.0.0.11:8000"),
            ("PORT_8000_TCP_PROTO", "tcp"),
            ("PORT_8000_TCP_PORT", "8000"),
            ("PORT_8000_TCP_ADDR", "10.0.0.11"),
        )
    }
    assert load({}, of_services) == load({}, {})


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        ({"port": "65536"}, {}, "--port: '65536' is more than the maximum 65535"),
        ({"tls_cert": "a"}, {}, "--tls-cert and --tls-key must be set together"),
        ({"tls_cert": "a", "tls_self_signed": True}, {"TABLEGATE_TLS_KEY": "b"},
         "--tls-self-signed and --tls-cert exclude each other"),
        ({"replica": ("postgresql://x/y",)}, {}, "--replica: only PostgreSQL has replicas"),
        ({}, {"TABLEGATE_SECRET_KEY": "x", "TABLEGATE_SECRET_KEY_FILE": "y"},
         "TABLEGATE_SECRET_KEY and TABLEGATE_SECRET_KEY_FILE exclude each other"),
        ({"start_from": ""}, {"TABLEGATE_WORKERS": "x"}, "TABLEGATE_WORKERS: 'x' is not a whole number"),
        ({"cors_origin": ("null",)}, {}, "--cors-origin: 'null' is not an origin"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_named_as_the_user_wrote_it(
    flags: dict[str, object], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        load(flags, environment)
    assert words in str(caught.value)


def test_memory_is_a_database_of_its_own() -> None:
    assert load({"memory": True}, {}).database == "sqlite://"
    assert load({"database": "sqlite://"}, {}).memory


def test_secrets_are_not_shown() -> None:
    assert "hunter2" not in repr(load({"secret_key": "hunter2hunter2hunter2"}, {}))


# The forms of libpq: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
@each_row(
    "written, normal",
    [
        ("postgres://u:p%40s@h/db?sslmode=require", "postgresql+psycopg://u:p%40s@h/db?sslmode=require"),
        ("postgresql://h", "postgresql+psycopg://h/"),
        ("postgresql+asyncpg://u@h:1/db", "postgresql+psycopg://u@h:1/db"),
        ("postgresql://[::1]:5433/x", "postgresql+psycopg://[::1]:5433/x"),
        ("postgresql:///db?host=/run/pg&port=6", "postgresql+psycopg:///db?host=/run/pg&port=6"),
        ("postgresql://%2Frun%2Fpg/db", "postgresql+psycopg:///db?host=/run/pg"),
        ("postgresql://a:1,b:2/d?target_session_attrs=any", "postgresql+psycopg:///d?host=a,b&port=1,2&target_session_attrs=any"),
        ("postgresql://?user=u&dbname=d&host=h", "postgresql+psycopg://u@h/d"),
        ("host=/run/pg dbname='my db' user=u password=a", "postgresql+psycopg://u:a@/my%20db?host=/run/pg"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
        ("/a/b.db", "sqlite:////a/b.db"),
        ("sqlite://", "sqlite://"),
        ("sqlite:///:memory:", "sqlite://"),
        (":memory:", "sqlite://"),
    ],
)  # fmt: skip
def test_database_urls_of_every_usual_form(written: str, normal: str) -> None:
    assert normalise(written) == normal
    assert normalise(normal) == normal


def test_a_relative_path_is_made_absolute() -> None:
    assert sqlite_path(normalise("sqlite:///a.db")) == Path("a.db").absolute()
    assert sqlite_path(normalise("x/a.db")) == Path("x/a.db").absolute()


def test_a_url_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgres://u:p@h/db\n")
    assert normalise(f"file:{file}") == normalise(f"file://{file}") == "postgresql+psycopg://u:p@h/db"
    with pytest.raises(BadDatabaseURL, match="cannot read"):
        normalise(f"file:{file}.missing")


def test_a_password_is_not_shown() -> None:
    assert without_password("postgresql+psycopg://u:secret@h/db") == "postgresql+psycopg://u:***@h/db"
