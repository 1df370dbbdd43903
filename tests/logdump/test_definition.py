"""Metadata records are formatted as in public listings of Logdump."""

from __future__ import annotations

from ggshell.logdump.layout import definition_lines
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName

COLUMNS = (
    Column("int", "integer", 23, nullable=False),
    Column("varchar", "character varying(150)", 1043),
    Column("time", "timestamp(6) without time zone", 1114),
)


def test_a_definition_has_the_numbered_legend_and_a_line_for_each_column() -> None:
    lines = list(definition_lines(TableDefinition(TableName("test", "test_f"), COLUMNS, (0,))))
    assert lines[0] == lines[6] == "*"
    assert lines[1].startswith(" 1)Name          2)Data Type        3)External Length ")
    assert lines[7:11] == ["TDR version: 11", "Definition for table test.test_f", "Record Length: 195", "Columns: 3"]
    assert lines[11:] == [
        "int      134     23        0  0  0 0 0      8      8      8 0 0 0 0 1    0 1   0   23       -1      0 0 0 integer",
        "varchar   64    150       11  0  0 1 0    150    150      0 0 0 0 0 1    0 0   0 1043       -1    150 0 0"
        " character varying(150)",
        "time     192     26      166  0  0 1 0     26     26      0 0 0 0 0 1    0 0   0 1114       -1      0 0 0"
        " timestamp(6) without time zone",
        "End of definition",
    ]
