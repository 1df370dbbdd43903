"""The replication for the cases: one source, one Extract, and a target for each kind of Replicat, all on one trail."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
from command_line import run_ggshell
from processes import until
from scenarios.case import Case, Step

from ggshell.demo.postgres_server import find_binaries
from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

KINDS = {"classic": "", "parallel": "PARALLEL, ", "coordinated": "COORDINATED MAXTHREADS 3, "}
REPLICATS = {kind: f"REP{number}" for number, kind in enumerate(KINDS, start=1)}
SECONDS = 20
"""The time limit to deliver the rows of a case on a busy machine."""
MARKS = "CREATE SCHEMA scenario; CREATE TABLE scenario.marks (mark int PRIMARY KEY);"


Replication = Callable[[Sequence[Case], Case], "Running"]
"""Takes all cases of a module and the current one; returns a replication that has the tables of all remaining cases."""


class Sql:
    """One database, queried through psql: an independent client that shares no code with the program."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._connection = psycopg.connect(dsn, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def has_mark(self, mark: int) -> bool:
        """Whether a mark has arrived; queried often, so over one connection."""
        query = "SELECT EXISTS (SELECT FROM scenario.marks WHERE mark = %s)"
        return self._connection.execute(query, [mark]).fetchone() == (True,)

    def write_mark(self, mark: int) -> None:
        self._connection.execute("INSERT INTO scenario.marks VALUES (%s)", [mark])

    def run(self, text: str, schema: str = "") -> str:
        """Run SQL, each statement in its own transaction unless the text has BEGIN; returns the output without headings."""
        command = [str(find_binaries() / "psql"), self.dsn, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        path = f"\\set schema {schema}\nSET search_path = {schema}, public;\n" if schema else ""
        result = subprocess.run(command, input=path + text, capture_output=True, text=True, check=False, timeout=600)
        assert result.returncode == 0, f"{text}\n{result.stderr}"
        return result.stdout.strip()

    def digest(self, table: str, schema: str) -> str:
        """Number of rows and md5 of a table's ordered rows; ``t (a, b)`` takes these columns only."""
        name, _, columns = table.strip().partition(" (")
        row = f"ROW({columns}::text" if columns else "t::text"
        rows = f"SELECT {row} AS line FROM {name} t"
        return self.run(
            f"SELECT count(*), md5(string_agg(line, E'\\n' ORDER BY line COLLATE \"C\")) FROM ({rows}) r;", schema
        )


class Running:
    """Extract EXT1 reads ``north``; REP1, REP2 and REP3 (classic, parallel, coordinated) each have a target."""

    def __init__(self, root: Path, north: str, targets: Sequence[str]) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.source = Sql(north)
        self.targets = {kind: Sql(dsn) for kind, dsn in zip(KINDS, targets, strict=True)}
        self.marks = 0
        self.usable = True
        store = CredentialStore(self.home)
        store.add("north", north, "")
        for kind, sql in self.targets.items():
            store.add(kind, sql.dsn, "")

    def begin(self, cases: Sequence[Case]) -> None:
        """Create the tables of the cases on both sides, add the groups and start them."""
        self._make_tables(cases)
        self._write_parameters(cases)
        self._add(cases)
        self.statements("START EXTRACT ext1", *(f"START REPLICAT {group}" for group in REPLICATS.values()))

    def _make_tables(self, cases: Sequence[Case]) -> None:
        def script(side: str) -> str:
            return MARKS + "".join(
                f"\\set schema {case.schema}\nCREATE SCHEMA {case.schema};\nSET search_path = {case.schema}, public;\n"
                f"{getattr(case, side)}\n"
                for case in cases
            )

        self.source.run(script("source_tables"))
        for sql in self.targets.values():
            sql.run(script("target_tables"))

    def _write_parameters(self, cases: Sequence[Case]) -> None:
        tables = "\n".join(case.extract.format(schema=case.schema) for case in cases)
        self._write(
            "ext1",
            f"EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\nTABLE scenario.*;\n{tables}\n",
        )
        for kind, group in REPLICATS.items():
            maps = "\n".join(_maps(case, kind, number) for number, case in enumerate(cases))
            barrier = ", COORDINATED" if kind == "coordinated" else ""
            head = f"REPLICAT {group}\nUSERIDALIAS {kind}\nGETTRUNCATES\nMAP scenario.*, TARGET scenario.*{barrier};\n"
            self._write(group, head + maps + "\n")

    def _write(self, group: str, text: str) -> None:
        self.home.parameters(group).write_text(text)

    def _add(self, cases: Sequence[Case]) -> None:
        trandata = [case.trandata.format(schema=case.schema) for case in cases if case.trandata != "none"]
        self.statements(
            "DBLOGIN USERIDALIAS north",
            "ADD TRANDATA scenario.*",
            *trandata,
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 50",
            *(
                line
                for kind, form in KINDS.items()
                for line in (
                    f"DBLOGIN USERIDALIAS {kind}",
                    "ADD CHECKPOINTTABLE scenario.checks",
                    f"ADD REPLICAT {REPLICATS[kind]}, {form}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE scenario.checks",
                )
            ),
        )

    def statements(self, *statements: str) -> str:
        """Run statements as a batch; returns the output."""
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def play(self, case: Case) -> None:
        """Run the steps of a case."""
        self.usable = False  # until the last step: the state after a failed case is undefined
        for step in case.steps:
            self._step(case, step)
        self.usable = True

    def _step(self, case: Case, step: Step) -> None:
        match step.kind:
            case "source":
                self.source.run(step.text, case.schema)
            case "target":
                for sql in self.targets.values():
                    sql.run(step.text, case.schema)
            case "equal":
                self.wait_until_equal(case, _names(step.text))
            case "holds":
                self.wait_for_result(case, step.text)
            case "holds stopped":
                query, _, wanted = step.text.rpartition(" = ")
                assert {sql.run(f"{query};", case.schema) for sql in self.targets.values()} == {wanted}
            case "abends":
                self.wait_for_abends(step.text)
            case "reports":
                text = step.text.format(schema=case.schema)
                self._until_all(f"the report holds {text}", lambda kind: text in self.report(kind))
            case "start":
                self.start_abended()
            case "settles":
                self.wait_until_settled()

    def wait_until_equal(self, case: Case, tables: Sequence[str]) -> None:
        """Wait until all changes have arrived and each table is the same on both sides."""
        self.wait_for_mark()
        for table in tables:
            wanted = self.source.digest(table, case.schema)

            def same(kind: str, table: str = table, wanted: str = wanted) -> bool:
                return self.targets[kind].digest(table, case.schema) == wanted

            try:
                self._until_all(f"{case.name}: {table} is equal to the source's", same)
            except AssertionError as error:
                error.add_note(self._difference(case, table))
                raise

    def _difference(self, case: Case, table: str) -> str:
        """The rows that only one side has, as ``diff`` writes them; the source is before."""
        query = f"SELECT * FROM {table.partition(' (')[0]};"
        wanted = sorted(self.source.run(query, case.schema).splitlines())
        found = {kind: sorted(sql.run(query, case.schema).splitlines()) for kind, sql in self.targets.items()}
        return "\n".join(
            line
            for kind, rows in found.items()
            for line in difflib.unified_diff(wanted, rows, "source", kind, lineterm="", n=0)
        )[:3000]

    def wait_for_result(self, case: Case, text: str) -> None:
        query, _, wanted = text.rpartition(" = ")
        self.wait_for_mark()
        self._until_all(
            f"{case.name}: {query} gives {wanted}",
            lambda kind: self.targets[kind].run(f"{query};", case.schema).replace("\n", " ") == wanted,
        )

    def wait_for_abends(self, text: str) -> None:
        self._until_all(f"abends with {text}", lambda kind: self.state(kind) is ProcessState.ABENDED, alive=False)
        for kind in KINDS:
            assert text in self.report(kind), self.report(kind)[-3000:]

    def wait_for_mark(self) -> None:
        """Wait until a mark written now is at every target; so are earlier changes, except those applied in parallel."""
        self.marks += 1
        self.source.write_mark(self.marks)
        self._until_all(f"mark {self.marks} arrives", lambda kind: self.targets[kind].has_mark(self.marks))

    def wait_until_settled(self) -> bool:
        """Wait until a mark has arrived or the Replicat has abended at every target; returns whether all have arrived."""
        self.marks += 1
        self.source.write_mark(self.marks)
        arrived: dict[str, bool] = {}

        def settled(kind: str) -> bool:
            arrived[kind] = self.targets[kind].has_mark(self.marks)
            return arrived[kind] or self.state(kind) is ProcessState.ABENDED

        self._until_all("settles", settled, alive=False)
        return all(arrived.values())

    def start_abended(self) -> None:
        stopped = [group for kind, group in REPLICATS.items() if self.state(kind) is ProcessState.ABENDED]
        if stopped:
            self.statements(*(f"START REPLICAT {group}" for group in stopped))

    def state(self, kind: str) -> ProcessState:
        return state_of(self.home.process(REPLICATS[kind], GroupKind.REPLICAT))[0]

    def report(self, kind: str) -> str:
        return self.home.report(REPLICATS[kind]).read_text()

    def _until_all(self, what: str, done: Callable[[str], bool], *, alive: bool = True) -> None:
        for kind in KINDS:
            until(f"{kind}: {what}", lambda kind=kind: done(kind) or (alive and self._alive(kind, what)), SECONDS)  # type: ignore[misc]

    def _alive(self, kind: str, what: str) -> bool:
        """Always False; raises if a group that should deliver has abended."""
        assert self.state(kind) is not ProcessState.ABENDED, f"{what}: {kind} abended\n{self.report(kind)[-3000:]}"
        extract = self.home.process("EXT1", GroupKind.EXTRACT)
        assert state_of(extract)[0] is not ProcessState.ABENDED, self.home.report("EXT1").read_text()[-3000:]
        return False

    def close(self) -> None:
        end_processes(self.home.root)
        for sql in (self.source, *self.targets.values()):
            sql.close()


def _maps(case: Case, kind: str, number: int) -> str:
    if case.replicat:
        return case.replicat.format(schema=case.schema)
    thread = f", THREAD ({number % 3 + 1})" if kind == "coordinated" else ""
    return f"MAP {case.schema}.*, TARGET {case.schema}.*{thread};"


def _names(text: str) -> list[str]:
    """``t, u (a, b)`` -> [``t``, ``u (a, b)``]."""
    names: list[str] = []
    for part in text.split(","):
        if names and names[-1].count("(") > names[-1].count(")"):
            names[-1] += "," + part
        else:
            names.append(part)
    return [name.strip() for name in names]
