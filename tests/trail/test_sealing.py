"""Encrypted trails: they are read back as written, and no value appears in the file in clear text."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch, read_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import PRODUCER, A, cut_records, hand_made_rows, read_all, seal, small

from ggshell.cipher import Key
from ggshell.clock import FakeClock
from ggshell.errors import NotFoundError, TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType
from ggshell.record.user_tokens import encode_user_tokens
from ggshell.trail.columnar import OnDamage, read_columnar
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.sealing import Keys, Protection
from ggshell.trail.writer import TrailWriter, WriterOptions

SECRETS = {("MASTER", 1): b"1" * 32, ("MASTER", 2): b"2" * 32, ("old", 0): b"k" * 16}


def keys(name: str, version: int) -> list[Key]:
    try:
        return [Key(SECRETS[name, version])]
    except KeyError:
        raise NotFoundError(f"no key {name}") from None


def options(algorithm: str = "AES256", version: int = 1) -> WriterOptions:
    return WriterOptions(protection=Protection(algorithm, "MASTER", version), keys=keys)


def open_writer(name: TrailName, wanted: WriterOptions) -> TrailWriter:
    return TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30, options=wanted)


def write(name: TrailName, wanted: WriterOptions, *batches: ChangeBatch) -> None:
    with contextlib.closing(open_writer(name, wanted)) as writer:
        for batch in batches:
            writer.write(batch)
        writer.flush()


def read(name: TrailName, with_keys: Keys | None = keys) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    with contextlib.closing(TrailReader(name, keys=with_keys)) as reader:
        while (batch := reader.read()) is not None:
            rows += read_rows(batch)
    return rows


@pytest.mark.parametrize("algorithm", ["AES128", "AES192", "AES256"])
def test_rows_are_read_back_and_their_values_appear_nowhere_in_the_file(tmp_path: Path, algorithm: str) -> None:
    clear, sealed = TrailName(tmp_path, "ea"), TrailName(tmp_path, "eb")
    batches = [
        make_batch([Tx(1, [Row(A, IoType.INSERT, b"a secret", 1), Row(A, IoType.PURGE_DATA, b"", 2)])]),
        small(2),
    ]
    write(clear, WriterOptions(), *batches)
    write(sealed, options(algorithm), *batches)
    without_rba = [row[:-1] for row in read(clear)]
    assert [row[:-1] for row in read(sealed)] == without_rba
    assert b"a secret" in clear.file(0).read_bytes()
    assert b"a secret" not in sealed.file(0).read_bytes()


@settings(max_examples=examples(30))
@given(rows=st.lists(hand_made_rows(), min_size=1, max_size=40))
def test_random_rows_are_read_back(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> None:
    name = TrailName(tmp_path_factory.mktemp("trail"), "ea")
    batch = make_batch([Tx(1, rows)])
    write(name, options(), batch)
    found = read(name)
    assert [row[2] for row in found] == [row[2] for row in read_rows(batch)]


def test_user_tokens_are_encrypted_too(tmp_path: Path) -> None:
    name, token = TrailName(tmp_path, "ea"), encode_user_tokens([("TK", b"hidden")])
    write(
        name,
        options(),
        make_batch([Tx(1, [Row(A, IoType.INSERT, b"row", user=token), Row(A, IoType.INSERT, b"bare")])]),
    )
    assert [row[-1] for row in read(name)] == [token, b""]
    assert b"hidden" not in name.file(0).read_bytes()


def test_a_renewed_key_starts_a_new_file_and_older_files_stay_readable(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options(version=1), small(1))
    write(name, options(version=1), small(2))
    assert name.sequences() == [0]
    write(name, options(version=2), small(3))
    write(name, WriterOptions(), small(4))
    assert name.sequences() == [0, 1, 2]
    assert [row[0] for row in read(name)] == [row[0] for csn in (1, 2, 3, 4) for row in read_rows(small(csn))]


def test_the_same_rows_never_give_the_same_ciphertext(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    for _ in range(2):
        write(name, options(), small(1, rows=1))
    file = InspectedFile(name.file(0))
    data = [
        seen.record.data for at, _ in cut_records(name.file(0).read_bytes()) if (seen := file.at(at)) and seen.record
    ]
    file.close()
    rows = [each for each in data if len(each) == len(data[1])]
    assert len(set(rows)) == len(rows) > 1


def test_rows_cannot_be_read_without_keys_or_with_a_wrong_key(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options(), small(1))
    assert read(name, None) != read(name)
    with pytest.raises(TrailError, match="the key of that name here is a different one"):
        read(name, lambda *_: [Key(b"x" * 32)])
    with pytest.raises(NotFoundError, match="no key"):
        read(name, lambda *_: keys("gone", 1))


def test_logdump_decrypts_rows_with_the_keys(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options(), small(1, rows=1, size=20))
    file = InspectedFile(name.file(0))
    file.decrypt(keys)
    found = [
        seen.record.data for at, _ in cut_records(name.file(0).read_bytes()) if (seen := file.at(at)) and seen.record
    ]
    file.close()
    assert b"B" * 20 in found


def test_a_changed_bit_is_detected_even_with_a_corrected_checksum(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options(), small(1, rows=1, size=20))
    content = name.file(0).read_bytes()
    place, record = cut_records(content)[1]
    changed = bytearray(record)
    changed[60] ^= 1
    name.file(0).write_bytes(content[:place] + seal(bytes(changed), place) + content[place + len(record) :])
    with pytest.raises(TrailError, match=f"cannot be decrypted.*\n?.*|RBA {place}"):
        read(name)


def test_read_all_without_encryption_needs_no_key(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, WriterOptions(), small(1))
    assert read_all(name) == read(name, None)


def test_queries_for_values_need_the_key_and_counts_do_not(tmp_path: Path) -> None:
    """Lengths are those of the values with and without the key. A missing key is not damage that a mode may skip."""
    name, clear = TrailName(tmp_path, "ea"), TrailName(tmp_path, "eb")
    batches = [small(number) for number in range(1, 9)]
    write(name, options(), *batches)
    write(clear, WriterOptions(), *batches)
    plain = [row for batch in read_columnar(clear.file(0), ["length", "op"]) for row in batch.to_pylist()]
    for held in (None, keys, lambda name, version: [Key(b"another" * 5)]):
        found = [row for batch in read_columnar(name.file(0), ["length", "op"], keys=held) for row in batch.to_pylist()]
        assert found == plain
    for how in OnDamage:
        with pytest.raises(TrailError, match="the key of that name here is a different one"):
            next(read_columnar(name.file(0), on_damage=how, keys=lambda name, version: [Key(b"another" * 5)]))
        with pytest.raises(NotFoundError, match=r"ea000000000 is encrypted with key MASTER, version 1"):
            next(read_columnar(name.file(0), on_damage=how, keys=lambda *_: keys("none", 0)))


def wallet_keys(*wallets: str) -> Keys:
    """The keys of wallets whose key is MASTER, version 1, each; the first wallet encrypts."""
    return lambda name, version: [Key(wallet.encode() * 4, wallet) for wallet in wallets]


def options_of_wallet(wallet: str, *more: str) -> WriterOptions:
    return WriterOptions(
        protection=Protection("AES256", "MASTER", 1, wallet), keys=wallet_keys(wallet, *more), follows=(wallet, *more)
    )


FIRST, SECOND = "11" * 8, "22" * 8


def test_a_file_names_its_wallet_and_another_wallet_is_refused_by_reader_and_writer(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options_of_wallet(FIRST), small(1))
    text = f"MASTER, version 1 of wallet {FIRST}, but the wallet here is {SECOND}"
    with pytest.raises(TrailError, match=text):
        read(name, wallet_keys(SECOND))
    with pytest.raises(TrailError, match=text):
        open_writer(name, options_of_wallet(SECOND))
    assert name.sequences() == [0]


def test_a_wallet_that_is_replaced_under_a_running_writer_starts_no_file(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    held = [FIRST]
    wanted = options_of_wallet(FIRST)._replace(keys=lambda *_: wallet_keys(*held)("MASTER", 1))
    with contextlib.closing(open_writer(name, wanted)) as writer:
        writer.write(small(1))
        writer.rollover()
        held[:] = [SECOND]
        with pytest.raises(TrailError, match=f"of wallet {FIRST}, but the wallet here is {SECOND}"):
            writer.write(small(2))
    assert name.sequences() == [0]


def test_a_merged_wallet_continues_the_trails_of_both_wallets_in_a_new_file(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write(name, options_of_wallet(FIRST), small(1))
    write(name, options_of_wallet(SECOND, FIRST), small(2))
    assert name.sequences() == [0, 1]
    assert len(read(name, wallet_keys(SECOND, FIRST))) == len(small(1)) + len(small(2))


def test_a_trail_from_before_wallets_had_ids_is_read_and_continued_only_with_its_own_key(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    old = WriterOptions(protection=Protection("AES256", "MASTER", 1), keys=lambda *_: [Key(FIRST.encode() * 4)])
    write(name, old, small(1))
    assert read(name, wallet_keys(FIRST)) == read(name, old.keys)
    with pytest.raises(TrailError, match="is encrypted with key MASTER, version 1, but"):
        open_writer(name, options_of_wallet(SECOND))
    write(name, options_of_wallet(FIRST), small(2))
    assert len(read(name, wallet_keys(FIRST))) == len(small(1)) + len(small(2))


def test_a_writer_with_an_older_wallet_copy_or_another_key_of_the_version_starts_no_file(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    newest = options_of_wallet(FIRST)
    second = newest._replace(protection=Protection("AES256", "MASTER", 2, FIRST))
    write(name, second, small(1))
    with pytest.raises(NotFoundError, match="version 2 of wallet"):
        open_writer(name, newest._replace(keys=lambda _, version: [Key(b"k" * 32, FIRST)] if version < 2 else no_key()))
    for smaller in (second, second._replace(compatibility=6)):
        with pytest.raises(TrailError, match="but the wallet here holds a different key for that version"):
            open_writer(name, smaller._replace(keys=lambda *_: [Key(b"k" * 32, FIRST)]))
    assert name.sequences() == [0]
    with_both_keys = second._replace(keys=lambda *_: [Key(b"k" * 32, FIRST), *wallet_keys(FIRST)("MASTER", 2)])
    write(name, with_both_keys, small(2))
    write(name, with_both_keys._replace(compatibility=6), small(3))
    assert len(read(name, with_both_keys.keys)) == sum(len(small(csn)) for csn in (1, 2, 3))


def no_key() -> list[Key]:
    raise NotFoundError("not there")
