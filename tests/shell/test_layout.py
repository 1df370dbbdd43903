"""Golden texts: the layouts of GGSCI, character by character."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from shell.ground import log_extract, replicat, trail_read

from ggshell.clock import from_datetime
from ggshell.shell.answers import (
    COUNTED,
    GroupLag,
    GroupStatistics,
    Lags,
    ProcessStatus,
    ProcessStatuses,
    Stats,
    TableCounts,
    Transactions,
)
from ggshell.shell.group_results import GroupInfo, InfoGroups, ManagerStatus, SlotFacts, Status, StatusLine
from ggshell.shell.layout import ggsci
from ggshell.shell.layout.groups import size
from ggshell.shell.listings import CredentialLine, Credentials, TrailInfo, Trails
from ggshell.shell.render import render
from ggshell.shell.results import InfoAll, ProcessLine, Text
from ggshell.store.checkpoint import StopStatus, WriteCheckpoint
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
    assert ggsci(InfoAll(lines)) == (
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
    info = GroupInfo(found._replace(read=read), "RUNNING", 448717, 0, 3 * SECOND)
    assert ggsci(InfoGroups((info,))) == (
        "\n"
        "EXTRACT    EXT_BI    Last Started 2020-12-29 19:30   Status RUNNING\n"
        "Checkpoint Lag       00:00:00 (updated 00:00:03 ago)\n"
        "Process ID           448717\n"
        "Log Read Checkpoint  PostgreSQL Write-Ahead Log\n"
        "                     2021-03-11 10:12:42  Seqno 1, RBA 83908280\n"
        "                     LSN 1/50056B8 (4378875576)\n"
    )


def test_info_replicat_that_never_ran() -> None:
    found = replicat("R1")._replace(created=at("2021-07-09 11:28"), read=trail_read(7, 519123))
    assert ggsci(InfoGroups((GroupInfo(found, "STOPPED", None, 61 * SECOND, 0),))) == (
        "\n"
        "REPLICAT   R1        Initialized   2021-07-09 11:28   Status STOPPED\n"
        "Checkpoint Lag       00:01:01 (updated 00:00:00 ago)\n"
        "Log Read Checkpoint  File ./dirdat/ea000000007\n"
        "                     First Record  RBA 519123\n"
    )


def test_detail_shows_the_trails_the_slot_and_the_files() -> None:
    target = WriteCheckpoint("./dirdatmis/bi", megabytes=500, current=TrailPosition(1102, 50268220))
    found = log_extract("E1")._replace(write=(target,), options={"slot": "ggs_e1"})
    slot = SlotFacts("ggs_e1", 5 << 20, 60 << 20, 7200.0, 120 << 20)
    text = ggsci(
        InfoGroups((GroupInfo(found, "STOPPED", None, 0, 0, {"Error log": "/h/ggserr.log"}, slot),), detail=True)
    )
    assert (
        "  Trail Name                                       Seqno        RBA     Max MB Trail Type\n"
        "\n"
        "  ./dirdatmis/bi                                    1102   50268220        500 EXTTRAIL  \n"
    ) in text
    assert "Replication slot     ggs_e1\nWAL held back        5.0 MB\nWAL growth           60.0 MB per hour\n" in text
    assert "Time left            02:00:00 until" in text
    assert text.endswith("\n\n\nError log            /h/ggserr.log\n")


def test_showch_has_the_blocks_in_order() -> None:
    found = log_extract("E1")._replace(write=(WriteCheckpoint("./dirdat/ea"),), stop=StopStatus.GRACEFUL)
    text = ggsci(InfoGroups((GroupInfo(found, "STOPPED", None, 0, 0),), showch=True))
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


def test_showch_of_a_replicat_names_its_table() -> None:
    found = replicat("R1")._replace(options={"checkpoint_table": "gg.ckpt", "group_key": 255})
    text = ggsci(InfoGroups((GroupInfo(found, "STOPPED", None, 0, 0),), showch=True))
    assert "Database Checkpoint:\n  Checkpoint table = gg.ckpt\n  Key = 255 (0xff)\n" in text
    assert "Recovery Checkpoint" not in text
    assert "# Output Checkpoints = 0" in text


def test_statistics_of_a_replicat() -> None:
    counts = {**dict.fromkeys(COUNTED, 0), "inserts": 4, "updates": 2, "deletes": 2}
    table = TableCounts("public.regions", "public.areas", {"total": counts})
    since = {"total": at("2020-11-08 15:48:44")}
    group = GroupStatistics("REPLICAT", "R_POST", at("2020-11-08 15:48:57"), since, (table,))
    assert ggsci(Stats((group,), ("total",))) == (
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
    text = ggsci(Stats((group,), ("latest",), "SEC"))
    assert "Output to ./dirdat/lt:\n\nExtracting from s.t to s.t:\n\n*** Latest statistics since" in text
    assert re.search(r"^ {8}Total inserts/second: +2\.00$", text, re.MULTILINE)


def test_lag_of_running_and_of_stopped_groups() -> None:
    groups = (
        GroupLag("EXTRACT", "EXT1", 23 * SECOND, at_end=True),
        GroupLag("EXTRACT", "EXT2", None, at_end=False),
        GroupLag("REPLICAT", "R1", 90 * SECOND, at_end=False, asked=False, status="STOPPED"),
    )
    assert ggsci(Lags(groups)) == (
        "\n"
        "Sending GETLAG request to EXTRACT EXT1 ...\n"
        "Last record lag: 23 seconds.\n"
        "At EOF, no more records to process.\n"
        "\n"
        "Sending GETLAG request to EXTRACT EXT2 ...\n"
        "No records yet processed.\n"
        "\n"
        "REPLICAT R1 is STOPPED; lag by its checkpoint and what waits for it:\n"
        "Last record lag: 90 seconds.\n"
        "Checkpoint Lag       00:01:30\n"
    )


def test_status_of_a_process() -> None:
    answer = {
        "pid": 1234,
        "status": "Recovery complete: At EOF",
        "read": {"lsn": "0/50056B8", "timestamp": at("2021-03-11 10:12:42")},
        "write": [{"trail": "./dirdat/ea", "seqno": 3, "rba": 77, "timestamp": 0}],
    }
    slot = SlotFacts("ggs_ext1", 2048, 0.0)
    text = ggsci(ProcessStatuses((ProcessStatus("EXTRACT", "EXT1", answer, slot),)))
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
        "  Room left            the server sets no limit, and its disk cannot be seen from here\n"
    )


def test_open_transactions() -> None:
    found = {"xid": "915", "items": 1, "start_time": "2019-03-29T22:00:35+00:00", "lsn": "0/112"}
    text = ggsci(Transactions("C11", (found,)))
    assert "-" * 60 + "\nXID:                  915\nItems:                1\nExtract:              C11\n" in text
    assert "Start Time:           2019-03-29:22:00:35\n" in text
    assert "No transactions found.\n" in ggsci(Transactions("C11", ()))


def test_trails_credentials_status_and_manager() -> None:
    assert ggsci(Trails((TrailInfo("./dirdat/aa", False, "EXTORA", 0, 0, 10),))) == (
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
    assert ggsci(Credentials("./dircrd/", entries)) == (
        "Reading from ./dircrd/:\n\nDefault domain: OracleGoldenGate\n\n  Alias: ggorcl\n  Userid: ggate\n"
    )
    assert ggsci(Status((StatusLine("EXTRACT", "EXTORA", "ABENDED"),))) == "EXTRACT EXTORA: ABENDED\n"
    assert ggsci(ManagerStatus(False)) == "\nManager is DOWN!\n"
    assert "Manager is running (IP port TCP:hol.7810, Process ID 1935).\n" in ggsci(
        ManagerStatus(True, "hol", 7810, 1935)
    )


def test_sizes_read_well() -> None:
    assert [size(number) for number in (0, 1023, 2048, 5 << 20, 3 << 40)] == [
        "0 bytes",
        "1023 bytes",
        "2.0 KB",
        "5.0 MB",
        "3072.0 GB",
    ]


@pytest.mark.parametrize("style", ["table", "vertical", "markdown"])
def test_a_page_is_a_text_in_every_format_that_people_read(style: str) -> None:
    assert render(Text("HELP", "BR\n  a page\n"), style) == "BR\n  a page\n"
    assert render(Text("HELP", "BR\n  a page\n"), "csv") == "line\nBR\n  a page\n"
