"""Documents of resource policies: what is kept of them, and that any document is kept or refused."""

from __future__ import annotations

import sys

from tablegate.adapters.dynamodb.validation import resource_rules
from tablegate.adapters.dynamodb.wire.errors import ServiceError

STATEMENT = (
    '{"Effect":"Allow","Principal":{"AWS":"111122223333"},"Action":"dynamodb:GetItem",'
    '"Resource":"arn:aws:dynamodb:us-east-1:111122223333:table/orders"%s}'
)

MOST_BYTES = 20_480


def test_a_document_of_any_depth_is_kept_or_refused() -> None:
    """One object becomes a list of one, which is written a level deeper than it was read.

    The limit is Python's: its recursion limit on 3.11, about 10,000 on 3.12 and 3.13, the size of the stack on 3.14.
    """
    kept, refused = [], []
    for depth in (*range(sys.getrecursionlimit() + 50), *range(9_900, 10_050), MOST_BYTES // 2):
        inner = STATEMENT % f',"Foo":{"[" * depth}1{"]" * depth}'
        try:
            resource_rules.canonical_document(f'{{"Statement":{inner}}}', "orders", "aws")
            kept.append(depth)
        except ServiceError:
            refused.append(depth)
    assert kept[0] == 0
    assert max(kept) < min(refused, default=MOST_BYTES)
