"""The layouts of GGSCI, compared character by character."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from cli.shell import log_extract, replicat, trail_read

from ggshell.cli.output.tables import render
from ggshell.cli.output.units import size
from ggshell.cli.results import Text
from ggshell.cli.results.groups import GroupInfo, InfoGroups, ManagerStatus, Status, StatusLine, slot_lines
from ggshell.cli.results.info_all import InfoAll, ProcessLine
from ggshell.cli.results.listings import CredentialLine, CredentialList, TrailInfo, Trails
from ggshell.cli.results.requests import GroupLag, Lags, ProcessStatus, ProcessStatuses, Transactions
from ggshell.cli.results.statistics import COUNTED, GroupStatistics, Stats, TableCounts
from ggshell.clock import from_datetime
from ggshell.groups.statistics import DDL_ERRORS, DDL_KINDS
from ggshell.home.checkpoint import GroupOptions, StopStatus, WriteCheckpoint
from ggshell.home.shown_place import PlacePart, ShownPlace
from ggshell.home.slot_facts import SlotFacts
from ggshell.home.typed_fields import plain
from ggshell.types import LogPosition, TrailPosition

SECOND = 1_000_000


def at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text).astimezone())


def test_info_all() -> None:
    lines = (
        ProcessLine("MANAGER", "RUNNING"),
        ProcessLine("EXTRACT", "RUNNING", "EXTRA1", 0, 2 * SECOND),
        ProcessLine("REPLICAT", "ABENDED", "R1", 842 * 3600 * SECOND, SECOND),
        ProcessLine("EXTRACT", "STOPPED", "BAD", known=False),
    )
    assert InfoAll(lines).layout == (
        "\n"
        "Program     Status      Group       Lag at Chkpt  Time Since Chkpt\n"
        "\n"
        "MANAGER     RUNNING                                           \n"
        "EXTRACT     RUNNING     EXTRA1      00:00:00      00:00:02    \n"
        "REPLICAT    ABENDED     R1          842:00:00     00:00:01    \n"
        "EXTRACT     STOPPED     BAD         Unknown       Unknown     \n"
        "\n"
    )


def test_info_extract_of_a_log() -> None:
    found = log_extract("EXT_BI", started=at("2020-12-29 19:30:47"))
    read = found.read._replace(current=LogPosition.of_lsn(0x1_0500_56B8), current_time=at("2021-03-11 10:12:42"))
    lsns = {"restart": 0x245BAF8, "flush": 0x1_0245BB30, "current": 0x1_0500_56B8}
    slot = SlotFacts("ggs_ext_bi", 5, database="shop", pid=16480, **lsns)
    info = GroupInfo(found._replace(read=read), "RUNNING", 448717, 0, 3 * SECOND, {}, slot)
    stopped = InfoGroups((info._replace(pid=None, status="STOPPED"),)).layout
    assert "Replication Slot     ggs_ext_bi is inactive in database shop\n" in stopped
    assert InfoGroups((info,)).layout == (
        "\n"
        "EXTRACT    EXT_BI    Last Started 2020-12-29 19:30   Status RUNNING\n"
        "Checkpoint Lag       00:00:00 (updated 00:00:03 ago)\n"
        "Process ID           448717\n"
        "VAM Read Checkpoint  2021-03-11 10:12:42.000000\n"
        "\n"
        "Replication Slot     ggs_ext_bi is active with PID 16480 in database shop\n"
        "Slot Restart LSN     0/245BAF8\n"
        "Slot Flush LSN       1/245BB30\n"
        "Current Log Position 1/50056B8\n"
    )


def test_info_replicat_that_has_never_run() -> None:
    found = replicat("R1")._replace(created=at("2021-07-09 11:28"), read=trail_read(7, 519123))
    assert InfoGroups((GroupInfo(found, "STOPPED", None, 61 * SECOND, 0),)).layout == (
        "\n"
        "REPLICAT   R1        Initialized   2021-07-09 11:28   Status STOPPED\n"
        "Checkpoint Lag       00:01:01 (updated 00:00:00 ago)\n"
        "Log Read Checkpoint  File ./dirdat/ea000000007\n"
        "                     First Record  RBA 519123\n"
    )


def test_detail_shows_the_trails_the_slot_and_the_files() -> None:
    target = WriteCheckpoint("./dirdatmis/bi", megabytes=500, current=TrailPosition(1102, 50268220))
    found = log_extract("E1")._replace(write=(target,), options=GroupOptions(slot="ggs_e1"))
    slot = SlotFacts("ggs_e1", 5 << 20, 60 << 20, 2.0, 120 << 20)
    text = InfoGroups(
        (GroupInfo(found, "STOPPED", None, 0, 0, {"Error log": "/h/ggserr.log"}, slot),), detail=True
    ).layout
    assert (
        "  Trail Name                                       Seqno        RBA     Max MB Trail Type\n"
        "\n"
        "  ./dirdatmis/bi                                    1102   50268220        500 EXTTRAIL  \n"
    ) in text
    assert "Replication slot     ggs_e1\nWAL held back        5.0 MB\nWAL growth           60.0 MB per hour\n" in text
    assert "Time left            02:00:00 until" in text
    falling = slot_lines(slot._replace(growth_per_hour=-1.9 * (1 << 20)))
    assert "WAL growth           none (decreasing by 1.9 MB per hour)" in falling
    assert text.endswith("\n\n\nError log            /h/ggserr.log\n")


def test_showch_has_its_blocks_in_order() -> None:
    found = log_extract("E1")._replace(write=(WriteCheckpoint("./dirdat/ea"),), stop=StopStatus.GRACEFUL)
    text = InfoGroups((GroupInfo(found, "STOPPED", None, 0, 0),), showch=True).layout
    heads = [
        "Current Checkpoint Detail:",
        "Read Checkpoint #1",
        "Startup Checkpoint (starting position in the data source):",
        "Recovery Checkpoint (position of oldest unprocessed transaction in the data source):",
        "Current Checkpoint (position of last record read in the data source):",
        "Write Checkpoint #1",
        "Current Checkpoint (current write position):",
        "CSN state information:",
        "Header:",
        "Configuration:",
        "Status:",
        "Stop Status = G",
    ]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_showch_of_a_replicat_shows_its_checkpoint_table() -> None:
    found = replicat("R1")._replace(options=GroupOptions(checkpoint_table="gg.ckpt", group_key=255))
    text = InfoGroups((GroupInfo(found, "STOPPED", None, 0, 0),), showch=True).layout
    assert "Database Checkpoint:\n  Checkpoint table = gg.ckpt\n  Key = 255 (0xff)\n" in text
    assert "Recovery Checkpoint" not in text
    assert "# Output Checkpoints = 0" in text


def test_statistics_of_a_replicat() -> None:
    counts = {**dict.fromkeys(COUNTED, 0), "inserts": 4, "updates": 2, "deletes": 2}
    table = TableCounts("public.regions", "public.areas", {"total": counts})
    since = {"total": at("2020-11-08 15:48:44")}
    group = GroupStatistics("REPLICAT", "R_POST", at("2020-11-08 15:48:57"), since, (table,))
    assert Stats((group,), ("total",)).layout == (
        "\n"
        "Sending STATS request to REPLICAT R_POST ...\n"
        "\n"
        "Start of Statistics at 2020-11-08 15:48:57.\n"
        "\n"
        "Replicating from public.regions to public.areas:\n"
        "\n"
        "*** Total statistics since 2020-11-08 15:48:44 ***\n"
        "        Total inserts                                      4.00\n"
        "        Total updates                                      2.00\n"
        "        Total deletes                                      2.00\n"
        "        Total upserts                                      0.00\n"
        "        Total discards                                     0.00\n"
        "        Total operations                                   8.00\n"
        "\n"
        "End of Statistics.\n"
    )


def test_statistics_of_an_extract_by_trail_and_as_rates() -> None:
    counts = {**dict.fromkeys(COUNTED, 0), "inserts": 120}
    table = TableCounts("s.t", "s.t", {"latest": counts})
    group = GroupStatistics("EXTRACT", "E1", 60 * SECOND, {"latest": 0}, (table,), ("./dirdat/lt",))
    text = Stats((group,), ("latest",), "SEC").layout
    assert "Output to ./dirdat/lt:\n\nExtracting from s.t to s.t:\n\n*** Latest statistics since" in text
    assert re.search(r"^ {8}Total inserts/second: +2\.00$", text, re.MULTILINE)


def test_statistics_of_ddl_statements() -> None:
    ddl = {
        **dict.fromkeys((*DDL_KINDS, *DDL_ERRORS), 0),
        "mapped": 3,
        "other": 1,
        "excluded": 1,
        "errors": 1,
        "ignored": 1,
    }
    extract = GroupStatistics("EXTRACT", "E1", 60 * SECOND, {"total": 0}, (), ("./dirdat/lt",), ddl=ddl)
    result = Stats((extract,), ("total",))
    assert (
        "DDL replication statistics (for all trails):\n"
        "\n"
        "*** Total statistics since extract started     ***\n"
        "        Operations                                         5.00\n"
        "        Mapped operations                                  3.00\n"
        "        Unmapped operations                                0.00\n"
        "        Other operations                                   1.00\n"
        "        Excluded operations                                1.00\n"
        "\n"
        "Output to ./dirdat/lt:\n"
    ) in result.layout
    (row,) = result.rows
    found = dict(zip(result.columns, row, strict=True))
    assert (found["source"], found["operations"], found["ddl_mapped"], found["inserts"]) == ("DDL", 5, 3, None)
    replicat = Stats((extract._replace(type="REPLICAT", group="R1", outputs=()),), ("total",)).layout
    assert "DDL replication statistics:\n\n*** Total statistics since replicat started     ***\n" in replicat
    assert "        Ignored errors                                     1.00\n" in replicat


def test_lag_of_running_and_stopped_groups() -> None:
    groups = (
        GroupLag("EXTRACT", "EXT1", 23 * SECOND, at_end=True),
        GroupLag("EXTRACT", "EXT2", None, at_end=False),
        GroupLag("REPLICAT", "R1", 90 * SECOND, at_end=False, asked=False, status="STOPPED"),
    )
    assert Lags(groups).layout == (
        "\n"
        "Sending GETLAG request to EXTRACT EXT1 ...\n"
        "Last record lag 23 seconds.\n"
        "At EOF, no more records to process.\n"
        "\n"
        "Sending GETLAG request to EXTRACT EXT2 ...\n"
        "No records yet processed.\n"
        "\n"
        "REPLICAT R1 is STOPPED; lag by its checkpoint and the data waiting for it:\n"
        "Last record lag 90 seconds.\n"
        "Checkpoint Lag       00:01:30\n"
    )


def test_status_of_a_process() -> None:
    place = ShownPlace("0/50056B8", after=(PlacePart("lsn", "LSN", "0/50056B8"),))
    answer = {
        "pid": 1234,
        "status": "Recovery complete: At EOF",
        "read": {"place": plain(place), "timestamp": at("2021-03-11 10:12:42")},
        "write": [{"trail": "./dirdat/ea", "seqno": 3, "rba": 77, "timestamp": 0}],
    }
    slot = SlotFacts("ggs_ext1", 2048, 0.0)
    text = ProcessStatuses((ProcessStatus("EXTRACT", "EXT1", answer, slot),)).layout
    assert text == (
        "\n"
        "Sending STATUS request to EXTRACT EXT1 ...\n"
        "\n"
        "EXTRACT EXT1 (PID 1234)\n"
        "  Current status: Recovery complete: At EOF\n"
        "\n"
        "  Current read position:\n"
        "    Timestamp: 2021-03-11 10:12:42.000000\n"
        "    LSN: 0/50056B8\n"
        "\n"
        "  Current write position:\n"
        "    Sequence #: 3\n"
        "    RBA: 77\n"
        "    Timestamp: Not Available\n"
        "    Extract Trail: ./dirdat/ea\n"
        "\n"
        "  Replication slot     ggs_ext1\n"
        "  WAL held back        2.0 KB\n"
        "  WAL growth           0 bytes per hour\n"
        "  Room left            the server does not set a limit, and its disk space is unknown\n"
    )


def test_open_transactions() -> None:
    found = {"xid": "915", "items": 1, "start_time": "2019-03-29T22:00:35+00:00"}
    text = Transactions("C11", (found,)).layout
    assert "-" * 60 + "\nXID:                  915\nItems:                1\nExtract:              C11\n" in text
    assert "Start Time:           2019-03-29:22:00:35\n" in text
    assert "No transactions found.\n" in Transactions("C11", ()).layout


def test_trails_credentials_status_and_manager() -> None:
    assert Trails((TrailInfo("./dirdat/aa", False, "EXTORA", 0, 0, 10),)).layout == (
        "\n"
        "       Extract Trail: ./dirdat/aa\n"
        "        Seqno Length: 9\n"
        "   Flip Seqno Length: no\n"
        "             Extract: EXTORA\n"
        "               Seqno: 0\n"
        "                 RBA: 0\n"
        "           File Size: 10M\n"
    )
    entries = (CredentialLine("OracleGoldenGate", "ggorcl", "ggate"),)
    assert CredentialList("./dircrd/", entries).layout == (
        "Reading from credential store:\n\nDefault domain: OracleGoldenGate\n\n  Alias: ggorcl\n  Userid: ggate\n"
    )
    assert Status((StatusLine("EXTRACT", "EXTORA", "ABENDED"),)).layout == "EXTRACT EXTORA: ABENDED\n"
    assert ManagerStatus(False).layout == "\nManager is DOWN!\n"
    assert (
        "Manager is running (IP port TCP:hol.7810, Process ID 1935).\n" in ManagerStatus(True, "hol", 7810, 1935).layout
    )


def test_sizes_have_readable_units() -> None:
    assert [size(number) for number in (0, 1023, 2048, 5 << 20, 3 << 40)] == [
        "0 bytes",
        "1023 bytes",
        "2.0 KB",
        "5.0 MB",
        "3072.0 GB",
    ]


@pytest.mark.parametrize("style", ["table", "vertical", "markdown"])
def test_a_page_is_text_in_every_human_readable_format(style: str) -> None:
    assert render(Text("HELP", "BR\n  a page\n"), style) == "BR\n  a page\n"
    assert render(Text("HELP", "BR\n  a page\n"), "csv") == "line\nBR\n  a page\n"
