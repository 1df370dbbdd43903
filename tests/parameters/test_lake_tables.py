"""LAKETABLE as a Replicat's process reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.parameters.lake_tables import (
    DEFAULT_LAYOUT,
    Compression,
    Deletes,
    Metadata,
    PartitionField,
    TableLayout,
    Transform,
)
from ggshell.parameters.loading import examine
from ggshell.parameters.process_parameters import ReplicatParameters
from ggshell.types import TableName


def replicat(*lines: str) -> ReplicatParameters:
    text = "\n".join(("REPLICAT lake", *lines, "MAP shop.*, TARGET shop.*;"))
    loaded = examine(text, Path("lake.prm"), "Replicat", group="")
    if loaded.refusals:
        raise loaded.refusals[0]
    found: ReplicatParameters = loaded.typed
    return found


def test_the_first_line_that_selects_a_table_applies() -> None:
    found = replicat(
        'LAKETABLE shop.orders, PARTITIONBY ("Region (x", DAY (created), BUCKET (id, 4)), CLUSTERBY (customer), TARGETSIZE 64M',
        "LAKETABLE shop.cust*, METADATA (XID, CSN), HISTORY, COMPRESSION none, DELETEDSHARE 0",
        "LAKETABLE shop.*, SOFTDELETES, CHANGEFEED",
    )
    assert found.layouts.of(TableName("shop", "orders")) == TableLayout(
        (
            PartitionField("Region (x"),
            PartitionField("created", Transform.DAY),
            PartitionField("id", Transform.BUCKET, 4),
        ),
        ("customer",),
        64 << 20,
    )
    assert found.layouts.of(TableName("shop", "customers")) == TableLayout(
        compression=Compression.NONE,
        metadata=(Metadata.CSN, Metadata.XID),
        deletes=Deletes.CLOSED,
        deleted_share=0.0,
    )
    assert found.layouts.of(TableName("shop", "items")) == TableLayout(deletes=Deletes.MARKED, feed=True)
    assert found.layouts.of(TableName("hr", "people")) == DEFAULT_LAYOUT


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "LAKETABLE shop.a, PARTITIONBY (WEEK (x))",
            r"WEEK \(x\) is not a valid field of a partition \(lake.prm:2:31\)",
        ),
        ("LAKETABLE shop.a, PARTITIONBY (BUCKET (x))", "not a valid field"),
        ("LAKETABLE shop.a, PARTITIONBY (DAY (x, 3))", "not a valid field"),
        ("LAKETABLE shop.a, PARTITIONBY (DAY (x), MONTH (x))", "one such way only"),
        ("LAKETABLE shop.a, METADATA (ROWID)", "ROWID is not a metadata column"),
        ("LAKETABLE shop.a, SOFTDELETES, HISTORY", "HISTORY"),
        ("LAKETABLE a, HISTORY", "a is not a valid table name"),
        ("LAKETABLE shop.a, DELETEDSHARE 101", "not in the range 0 to 100"),
        ("LAKETABLE shop.a, TARGETSIZE 1K", "TARGETSIZE"),
    ],
)
def test_a_line_that_is_not_valid_is_refused_at_its_column(line: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        replicat(line)
