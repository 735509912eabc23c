"""Grants: the decision of a policy for accesses, and its cache of decisions."""

from __future__ import annotations

from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.conditions import Glob
from tablegate.gateway.model.authorization.grants import (
    _LONGEST_KEPT_PATH,
    EVERY_ACTION,
    Effect,
    Policy,
    Resources,
    Statement,
    Verdict,
)
from tablegate.gateway.model.authorization.permissions import Channel, Permission


def test_a_long_path_is_evaluated_and_not_cached() -> None:
    policy = Policy((Statement(Effect.ALLOW, EVERY_ACTION, (Resources(Glob.of("a*")),)),))
    for first, verdict in (("a", Verdict.ALLOWED), ("b", Verdict.NOT_ALLOWED)):
        longest = Access(Permission.READ, Channel.SINGLE, "", first * _LONGEST_KEPT_PATH, None)
        longer = longest._replace(path=longest.path + first)
        assert policy.decide(longest).verdict is verdict
        assert policy.decide(longer).verdict is verdict
        assert longest[:4] in policy.decisions
        assert longer[:4] not in policy.decisions
