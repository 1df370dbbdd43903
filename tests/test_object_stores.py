"""Locations in object stores: what is opened, where credentials come from, and the errors of a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from object_stores import SECRET_KEY, Bucket

from ggshell.errors import ConnectionLostError, NotFoundError, UsageError
from ggshell.object_stores import is_elsewhere, open_place, store_error


def test_a_location_is_read_in_ranges_with_the_credentials_of_the_environment(bucket: Bucket) -> None:
    text = bucket.put("trails/one", bytes(range(200)))
    place = open_place(f"s3a://{bucket.name}/trails/").child("one")
    assert (place.path, place.text) == (f"{bucket.name}/trails/one", f"s3a://{bucket.name}/trails/one")
    with place.system.open_input_file(place.path) as file:
        assert file.read_at(3, 100) == bytes([100, 101, 102])
    assert text == f"s3://{bucket.name}/trails/one"


def test_a_folder_of_this_machine_is_a_place_too(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    for text in (str(tmp_path), f"file://{tmp_path}"):
        assert not is_elsewhere(text)
        place = open_place(text).child("one")
        with place.system.open_input_stream(place.path) as file:
            assert file.read() == b"1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nosuch://there/x", "nosuch://there/x is not a valid location"),
        ("s3:///x", "it names no bucket"),
        ("s3://key:zq9-secret@bucket/x", "a location cannot contain credentials: s3://…@bucket/x"),
        ("gs://token@bucket/x", "cannot contain credentials"),
        ("abfs://container:zq9-secret@account.dfs.core.windows.net/x", "cannot contain credentials"),
        ("abfs://container/x", "AZURE_STORAGE_ACCOUNT_NAME is not set"),
    ],
)
def test_a_location_that_is_not_valid_is_refused_without_its_secrets(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        open_place(text, {})
    assert "zq9" not in str(refused.value)


def test_an_azure_account_is_named_by_the_location_or_by_the_environment() -> None:
    key = "a2V5"
    named = open_place("abfss://box@shop.dfs.core.windows.net/trails", {"AZURE_STORAGE_ACCOUNT_KEY": key})
    other = open_place("abfs://box/trails", {"AZURE_STORAGE_ACCOUNT_NAME": "shop", "AZURE_STORAGE_ACCOUNT_KEY": key})
    assert named.path == other.path == "box/trails"
    assert named.system == other.system


def test_a_missing_bucket_and_a_missing_object_do_not_exist(bucket: Bucket) -> None:
    for place in (bucket.place("none"), open_place("s3://no-such-bucket/none")):
        with pytest.raises(OSError, match=r"does not exist|NO_SUCH|not found") as failed:
            place.system.open_input_file(place.path)
        error = store_error(place.text, failed.value)
        assert isinstance(error, NotFoundError)
        assert str(error).startswith(f"{place.text} does not exist")


def test_refused_credentials_and_an_unreachable_store_are_told_apart() -> None:
    denied = store_error(
        "s3://b/x", OSError("When reading: AWS Error ACCESS_DENIED during HeadObject operation: No response body.")
    )
    assert denied.code == "GGS-00716"
    assert "check the credentials in the environment" in denied.hint
    lost = store_error("s3://b/x", OSError("AWS Error NETWORK_CONNECTION: curlCode: 7, Could not connect to server"))
    assert isinstance(lost, ConnectionLostError)
    assert "AWS_ENDPOINT_URL" in lost.hint


def test_a_missing_client_library_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "HADOOP_HOME"):
        monkeypatch.setenv(name, "/nonexistent")
    with pytest.raises(ConnectionLostError, match="cannot use hdfs://there:1/x: Hadoop's client library was not found"):
        open_place("hdfs://there:1/x")


def test_no_message_of_a_store_contains_a_credential(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{bucket.server.endpoint}/nowhere")
    with pytest.raises(OSError, match="AWS Error") as failed:
        open_place(f"{bucket.location}/x").system.open_output_stream(f"{bucket.name}/x").close()
    assert SECRET_KEY not in str(store_error(bucket.location, failed.value))
