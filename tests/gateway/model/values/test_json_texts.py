"""Marks of long texts are counted in slices, so that other threads run in between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values import bodies


@given(st.text('{,"N:', max_size=40), st.integers(1, 8), st.sampled_from([b"{", b'"N":', b"Nn"]))
def test_slices_find_what_the_whole_text_has(text: str, slice_bytes: int, mark: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "_SLICE_BYTES", slice_bytes)
        assert bodies.count(text.encode(), mark) == text.encode().count(mark)
        assert bodies.contains(text.encode(), mark) is (mark in text.encode())
