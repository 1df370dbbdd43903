"""Numbers of the log as text: the shortest text that is read as the same number, for any value."""

from __future__ import annotations

import struct
from decimal import Context, Decimal, setcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ggshell.connectors.mysql.binlog.cells import padded
from ggshell.connectors.mysql.binlog.numbers import decimal_cells, float_cells, integer_cells


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=30))
def test_signed_integers_are_their_decimal_text(values: list[int]) -> None:
    assert integer_cells(np.array(values, dtype=np.int64)).values() == [str(value).encode() for value in values]


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=30))
def test_unsigned_integers_are_their_decimal_text(values: list[int]) -> None:
    assert integer_cells(np.array(values, dtype=np.uint64)).values() == [str(value).encode() for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
@example([5550670050389.0, 0.03125])
@example([999999999999999.0, 0.000001])
def test_a_double_is_read_back_as_itself_from_no_more_digits_than_needed(values: list[float]) -> None:
    for value, text in zip(values, float_cells(np.array(values)).values(), strict=True):
        assert struct.pack("<d", float(text)) == struct.pack("<d", value)
        assert len(Decimal(text.decode()).normalize().as_tuple().digits) <= len(
            Decimal(repr(value)).normalize().as_tuple().digits
        )


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_a_float_is_read_back_as_itself(values: list[float]) -> None:
    single = np.array(values, dtype=np.float32)
    for value, text in zip(single, float_cells(single).values(), strict=True):
        assert np.float32(text.decode()).tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e15, b"1e15"),
        (1e14, b"100000000000000"),
        (123456.75, b"123456.75"),
        (1e-14, b"0.00000000000001"),
        (1e-15, b"0.000000000000001"),
        (1e-16, b"1e-16"),
        (-2.5e100, b"-2.5e100"),
        (-0.5, b"-0.5"),
    ],
)
def test_a_double_has_the_form_of_the_server(value: float, text: bytes) -> None:
    assert float_cells(np.array([value])).values() == [text]


def _stored(text: str, precision: int, scale: int) -> bytes:
    """A DECIMAL as the log has it, written digit by digit from the manual's description."""
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    number = Decimal(text)
    whole, _, fraction = f"{abs(number):.{scale}f}".partition(".")
    whole = whole.zfill(precision - scale)[-(precision - scale) :] if precision > scale else ""
    first = len(whole) % 9
    groups = [whole[:first], *(whole[at : at + 9] for at in range(first, len(whole), 9))]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    data = bytearray(b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups if group))
    data[0] ^= 0x80
    return bytes(byte ^ 0xFF for byte in data) if number < 0 else bytes(data)


@given(st.data())
def test_decimals_of_every_precision_and_scale_keep_all_digits(data: st.DataObject) -> None:
    setcontext(Context(prec=80))
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(precision, 38)))
    digits = data.draw(st.lists(st.integers(0, 10**precision - 1), min_size=1, max_size=8))
    texts = [f"{'-' if value % 2 else ''}{Decimal(value).scaleb(-scale):.{scale}f}" for value in digits]
    stored = [_stored(text, precision, scale) for text in texts]
    place = np.arange(len(stored)) * len(stored[0])
    found = decimal_cells(padded(b"".join(stored)), place, precision, scale).values()
    assert found == [text.encode() for text in texts]
