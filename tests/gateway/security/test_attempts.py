"""Wrong secrets are counted by address and by name, in bounded memory. A right secret is always accepted."""

from __future__ import annotations

import pytest
import requests

from tablegate.gateway.console.sign_in import SignIn
from tablegate.gateway.model.errors import TooManyAttempts
from tablegate.gateway.security import attempts
from tablegate.gateway.security.attempts import AttemptLimiter
from tablegate.gateway.security.credentials import Credential, Scheme
from tests.conftest import Serve
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S

HERE, ELSEWHERE = "192.0.2.1", "198.51.100.1"


class Guarded:
    """A secret behind an attempt limiter, with a fixed clock."""

    def __init__(self) -> None:
        self.at_s = 1000.0
        self.attempts = AttemptLimiter(lambda: self.at_s)

    def give(self, secret: str, address: str = HERE, name: str = "owner") -> bool | int:
        """Return True for a right secret and False for a wrong one, or the seconds of a 429."""
        try:
            proof = self.attempts.judge(address, name, lambda: secret if secret == "right" else None)
        except TooManyAttempts as error:
            return error.retry_after_s
        return proof is not None

    def guesses(self, number: int, address: str = HERE, name: str = "owner") -> int:
        """Return the number of wrong secrets that were answered without TooManyAttempts."""
        return sum(self.give("wrong", address, name) is False for _ in range(number))


@pytest.fixture
def guarded() -> Guarded:
    return Guarded()


def test_a_right_secret_is_accepted_after_any_number_of_wrong_ones(guarded: Guarded) -> None:
    """A client with an old token sends one wrong secret a second, from the address of the owner."""
    for _ in range(47):
        guarded.give("wrong")
        assert guarded.give("right") is True
        guarded.at_s += 1
    for number in range(256):
        guarded.guesses(10, f"203.0.113.{number}")
        guarded.guesses(10, name=f"name {number}")
    assert guarded.give("right") is True
    assert guarded.give("right", ELSEWHERE) is True


def test_an_address_has_five_wrong_secrets_for_a_name_and_then_one_every_five_seconds(
    guarded: Guarded,
) -> None:
    assert [guarded.give("wrong") for _ in range(7)] == [False] * 5 + [5, 5]
    guarded.at_s += 4.5
    assert guarded.give("wrong") == 1
    guarded.at_s += 0.5
    assert guarded.guesses(1000) == 1
    guarded.at_s += 3600
    assert guarded.guesses(1000) == 5  # not more after a longer wait


def test_right_secrets_are_not_counted(guarded: Guarded) -> None:
    assert all(guarded.give("right") is True for _ in range(1000))
    assert guarded.guesses(1000) == 5


def test_an_address_has_twenty_wrong_secrets_for_all_names_and_then_one_a_second(guarded: Guarded) -> None:
    assert sum(guarded.guesses(1, name=f"name {number}") for number in range(1000)) == 20
    guarded.at_s += 10
    assert sum(guarded.guesses(1, name=f"other {number}") for number in range(1000)) == 10


def test_a_name_has_twenty_wrong_secrets_from_all_addresses_and_then_one_a_second(guarded: Guarded) -> None:
    addresses = [f"203.0.113.{number}" for number in range(256)]
    assert sum(guarded.guesses(10, address) for address in addresses) == 20
    guarded.at_s += 10
    assert sum(guarded.guesses(10, address) for address in addresses) == 10
    assert guarded.guesses(10, name="another") == 5


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
        ("unix:/run/a", "unix:/run/b", False),
    ],
)
def test_addresses_of_one_ipv6_network_are_one_client(
    guarded: Guarded, first: str, second: str, is_one: bool
) -> None:
    guarded.guesses(5, first)
    assert guarded.guesses(5, second) == (0 if is_one else 5)


def test_memory_is_bounded(guarded: Guarded) -> None:
    for number in range(attempts._MAX_ALLOWANCES // 3 + 100):
        guarded.give(
            "wrong", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"{number}" + "x" * 10_000
        )
    assert len(guarded.attempts._full_at_s) == attempts._MAX_ALLOWANCES
    assert max(len(name) for *_, name in guarded.attempts._full_at_s) <= 256


# Call sites


@pytest.fixture
def strict(serve: Serve, database_url: str) -> Running:
    running = serve(database_url, auth="strict", admin_token="the token", metrics_token="figures")
    clock = Guarded()
    running.app.extensions["tablegate"].gateway.attempts.now_s = lambda: clock.at_s
    return running


def test_guesses_of_the_administrators_token_count_together_in_console_and_control_api(
    strict: Running,
) -> None:
    def sign_in(secret: str) -> requests.Response:
        form = {"access_id": "administrator", "secret": secret}
        return requests.post(f"{strict.url}/_tablegate/console/sign-in", data=form, timeout=PATIENCE_S)

    def control(token: str | None) -> requests.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return requests.get(f"{strict.url}/_tablegate/clock", headers=headers, timeout=PATIENCE_S)

    assert [sign_in("wrong").status_code for _ in range(3)] == [403] * 3
    assert control("the token").status_code == 200
    assert [control(None).status_code for _ in range(10)] == [403] * 10  # no guess
    assert [control("wrong").status_code for _ in range(3)] == [403, 403, 429]
    for refused in (control("wrong"), sign_in("wrong")):
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        assert "Try again in 5 s" in refused.text
        assert "tablegate-console" not in refused.cookies
    assert control("the token").status_code == 200
    assert "tablegate-console" in sign_in("the token").history[0].cookies


def test_wrong_secrets_of_a_credential_do_not_lock_out_its_owner(strict: Running) -> None:
    gateway = strict.app.extensions["tablegate"].gateway
    gateway.credentials.replace([Credential(Scheme.AWS, "KEY", ("a secret",))])
    sign_in = SignIn(gateway)
    for _ in range(5):
        assert sign_in.cookie_of("KEY", "wrong", HERE) is None
    with pytest.raises(TooManyAttempts):
        sign_in.cookie_of("KEY", "wrong", HERE)
    assert sign_in.cookie_of("KEY", "a secret", HERE) is not None


def test_wrong_metrics_tokens_are_counted(strict: Running) -> None:
    def ask(token: str) -> tuple[int, str]:
        answer = requests.get(
            f"{strict.url}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S
        )
        return answer.status_code, answer.headers.get("Retry-After", "")

    assert [ask("wrong") for _ in range(6)] == [(401, "")] * 5 + [(429, "5")]
    assert ask("figures") == (200, "")
    assert ask("wrong") == (429, "5")
