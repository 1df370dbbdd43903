"""Both encoders give the same bytes, and records decode one by one to the rows of the batch."""

from __future__ import annotations

import numpy as np
import pytest
from amounts import examples
from batches import Row, Tx, make_batch
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import A, hand_made_rows

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.errors import TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import decode, layout
from ggshell.trail.decode import good_records
from ggshell.trail.encode import encode_at_once, encode_batch, encode_one_by_one
from ggshell.trail.fragments import join_fragments
from ggshell.trail.record import decode_record
from ggshell.trail.tokens import transaction_header, transaction_headers, transaction_tokens
from ggshell.types import Csn, CsnForm

INDEXES = np.array([3, 65_535], dtype=np.uint16)
row_lists = st.lists(hand_made_rows(), min_size=1, max_size=4)


@st.composite
def batches(draw: st.DrawFn) -> ChangeBatch:
    """Whole transactions, sometimes after the end of another one and before the beginning of a third."""
    whole = draw(st.lists(row_lists, min_size=1, max_size=4))
    parts = [Tx(csn, changes) for csn, changes in enumerate(whole, 2)]
    if draw(st.booleans()):
        parts.insert(0, Tx(1, draw(row_lists), begins=False))
    if draw(st.booleans()):
        parts.append(Tx(50, draw(row_lists), ends=False))
    return make_batch(parts)


@settings(max_examples=examples(80))
@given(batches(), st.integers(0, 2**33))
def test_both_encoders_give_the_same_bytes(batch: ChangeBatch, rba: int) -> None:
    assert bytes(encode_at_once(batch, INDEXES, rba)) == encode_one_by_one(batch, INDEXES, rba)


@settings(max_examples=examples(60))
@given(batches(), st.integers(0, 2**33))
def test_the_records_of_a_batch_decode_one_by_one_to_its_rows(batch: ChangeBatch, rba: int) -> None:
    data = bytes(encode_batch(batch, INDEXES, rba))
    records = good_records(data, "x", rba)
    assert records.end == len(data)
    assert records.fault is None
    for row, (start, total) in enumerate(zip(records.start.tolist(), records.total.tolist(), strict=True)):
        record = decode_record(data[start : start + total], rba=rba + start)
        first = int(batch.start[row])
        assert record.data == bytes(batch.buffer[first : first + int(batch.length[row])])
        assert (record.io_type, record.audit_pos) == (int(batch.io_type[row]), int(batch.position[row]))
        before = batch.befores is not None and bool(batch.befores[row])
        assert record.before_after == ("B" if before or record.io_type == IoType.DELETE else "A")
        tokens = batch.user_tokens
        place = (0, 0) if tokens is None else (int(tokens.start[row]), int(tokens.length[row]))
        assert record.user_tokens == bytes(batch.buffer[place[0] : sum(place)])
        assert record.table_index == int(INDEXES[batch.table[row]])


def test_fragments_are_numbered_and_the_last_one_has_the_transaction_end() -> None:
    data = bytes(range(256)) * 600
    data = bytes(encode_batch(make_batch([Tx(9, [Row(A, IoType.INSERT, data)])]), INDEXES, 0))
    records = good_records(data, "x", 0)
    assert records.header["trans_ind"].tolist() == [0, 1, 2]
    assert records.header["io_type"].tolist() == [5, 161, 161]
    assert records.header["continued"].tolist() == [1, 1, 0]
    assert records.header["rec_count"].tolist() == [1, 2, 3]
    joined = join_fragments(data, records, "x", 0)
    assert joined.records.header["trans_ind"].tolist() == [3]
    assert int(joined.records.data_length[0]) == 256 * 600


@pytest.mark.parametrize("restart", [0, 1, 2**63 + 5])
@pytest.mark.parametrize("csn", [Csn(0), Csn(2**64 - 1), Csn(123456, CsnForm.NUMBER), Csn(10**16, CsnForm.NUMBER)])
@pytest.mark.parametrize("xid", ["", "742", "10.2.33", "ü" * 100, "x" * 300])
def test_the_tokens_of_a_transaction_are_read_back(xid: str, csn: Csn, restart: int) -> None:
    header = TransactionHeader(xid, csn, 5, restart)
    data = transaction_tokens(header)
    assert data.startswith(layout.token(layout.LOGCSN, str(csn).encode()) + layout.token(layout.TRANID, xid.encode()))
    assert transaction_header(data, 0, len(data), 5 + JULIAN_EPOCH_MICROSECONDS) == header


_HEADERS = st.builds(
    TransactionHeader,
    st.sampled_from(["742", "", "10.2.33", "ü" * 40, "x" * 300]),
    st.builds(Csn, st.integers(0, 2**64 - 1)) | st.builds(Csn, st.integers(0, 10**20), st.just(False)),
    st.integers(0, 2**52),
    st.sampled_from([0, 1, 2**63 + 5]),
)


@given(st.lists(_HEADERS, min_size=17, max_size=40))
def test_the_tokens_of_many_transactions_are_read_like_those_of_one(headers: list[TransactionHeader]) -> None:
    parts = [b"" if header.csn.value > 2**64 - 1 else transaction_tokens(header) for header in headers]
    kept = [header for header, part in zip(headers, parts, strict=True) if part]
    parts = [part for part in parts if part]
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - [len(part) for part in parts]
    times = np.array([header.commit_time + JULIAN_EPOCH_MICROSECONDS for header in kept], dtype=np.uint64)
    assert transaction_headers(b"".join(parts), starts, ends, times) == kept


@pytest.mark.parametrize("bad", [b"", b"L\0\x11\0", b"6\0\x01\0\xff", b"L\0\x11\x0000000000/0000002A6\0\x01\0\xff"])
def test_a_record_without_transaction_tokens_is_named_among_many(bad: bytes) -> None:
    good = transaction_tokens(TransactionHeader("742", Csn(42), 0, 0))
    parts = [*[good] * 20, bad, *[good] * 20]
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - [len(part) for part in parts]
    with pytest.raises(ValueError, match=r".") as caught:
        transaction_headers(b"".join(parts), starts, ends, np.full(41, JULIAN_EPOCH_MICROSECONDS, dtype=np.uint64))
    assert caught.value.args[1] == 20


def outcome_of(data: bytes, rba: int, few: int) -> object:
    """What decoding gives if chunks up to ``few`` bytes are walked record by record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "FEW_BYTES", few)
        try:
            records = good_records(data, "x", rba)
        except TrailError as error:
            return str(error)
    arrays = [*records[:7], *([] if records.user is None else records.user)]
    return [array.tolist() for array in arrays], records.end, records.fault


@settings(max_examples=examples(80))
@given(
    batches(),
    st.integers(0, 2**33),
    st.none() | st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)),
    st.floats(0, 1),
)
def test_records_found_at_once_are_those_that_a_walk_finds(
    batch: ChangeBatch, rba: int, damage: tuple[float, int] | None, part: float
) -> None:
    data = bytearray(encode_batch(batch, INDEXES, rba))
    if damage is not None:
        place, change = damage
        data[int(place * len(data))] ^= change
    chunk = bytes(data[: int(part * len(data))])
    assert outcome_of(chunk, rba, few=0) == outcome_of(chunk, rba, few=1 << 30)
