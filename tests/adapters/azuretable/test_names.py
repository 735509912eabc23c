"""Attribute names as property names: reversible, for names of any dialect."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable.keys import SYSTEM_NAMES, is_legal, spelled, unspelled
from tests.support.tables import each_row


@each_row(
    "attribute, name",
    [
        ("plain", "plain"),
        ("_private", "_private"),
        ("größe", "größe"),
        ("my-attr", "my_x002D_attr"),
        ("1st", "_x0031_st"),
        ("a.b", "a_x002E_b"),
        ("PartitionKey", "_x0050_artitionKey"),
        ("Timestamp", "_x0054_imestamp"),
        ("odata.etag", "odata_x002E_etag"),
        ("", "_x_"),
        ("🙂", "_x0001F642_"),
        # A legal name that equals the encoding of another attribute is encoded too.
        ("my_x002D_attr", "my_x005F_x002D_attr"),
        ("a_x0041_", "a_x0041_"),
        # An escape begins with "_", which must not end another one.
        ("_x0041-", "_x005F_x0041_x002D_"),
    ],
)
def test_attribute_names_are_escaped_and_restored(attribute: str, name: str) -> None:
    assert spelled(attribute) == name
    assert unspelled(name) == attribute


_pieces = st.sampled_from(
    ["_", "x", "_x002D_", "_x005F_", "-", "0", "A", "_x0041_", "é", ".", "🙂", "PartitionKey"]
)
_attributes = st.one_of(st.text(max_size=8), st.lists(_pieces, max_size=6).map("".join)).filter(
    lambda text: not any("\ud800" <= character <= "\udfff" for character in text)
)


@given(_attributes)
def test_every_attribute_has_a_legal_spelling_that_is_read_back(attribute: str) -> None:
    name = spelled(attribute)
    assert is_legal(name)
    assert name not in SYSTEM_NAMES
    assert unspelled(name) == attribute


@given(_attributes.filter(lambda name: is_legal(name) and name not in SYSTEM_NAMES))
def test_every_name_that_a_client_may_write_is_shown_as_it_was_written(name: str) -> None:
    assert spelled(unspelled(name)) == name
