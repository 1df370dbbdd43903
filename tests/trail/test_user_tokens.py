"""The encoding of user tokens, and which ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.record.user_tokens import LONGEST_TOKENS, LONGEST_VALUE, decode_user_tokens, encode_user_tokens

_TOKENS = st.dictionaries(st.text("abcÄ-_09", min_size=1, max_size=40), st.binary(max_size=60), max_size=8)


@given(_TOKENS)
def test_tokens_are_read_back_in_order(tokens: dict[str, bytes]) -> None:
    assert list(decode_user_tokens(encode_user_tokens(tokens.items())).items()) == list(tokens.items())


def test_the_bytes_are_those_of_the_format_page() -> None:
    assert encode_user_tokens([("TK-HOST", b"north"), ("e", b"")]) == b"\7TK-HOST\5\0north\1e\0\0"


@given(_TOKENS, st.data())
def test_a_cut_is_detected_or_leaves_whole_tokens(tokens: dict[str, bytes], data: st.DataObject) -> None:
    encoded = encode_user_tokens(tokens.items())
    length = data.draw(st.integers(0, len(encoded)))
    try:
        found = decode_user_tokens(encoded[:length])
    except ValueError:
        return
    assert list(found.items()) == list(tokens.items())[: len(found)]


@pytest.mark.parametrize(
    "tokens",
    [
        [("", b"x")],
        [("n" * 256, b"x")],
        [("name", b"x" * (LONGEST_VALUE + 1))],
        [(f"t{number}", b"x" * LONGEST_VALUE) for number in range(LONGEST_TOKENS // LONGEST_VALUE)],
    ],
)
def test_a_token_that_is_too_long_is_refused_by_name(tokens: list[tuple[str, bytes]]) -> None:
    with pytest.raises(ValueError, match=f"token {tokens[-1][0]}"):
        encode_user_tokens(tokens)
