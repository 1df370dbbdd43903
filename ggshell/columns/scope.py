"""What the names of an expression mean: the columns of a table, the results of queries, facts of the process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from ggshell.columns import nodes
from ggshell.columns.environment import Environment
from ggshell.columns.nodes import Node
from ggshell.columns.rows import Rows, Side
from ggshell.columns.values import State, Value
from ggshell.errors import StatementError
from ggshell.record.definition import TableDefinition
from ggshell.syntax.expression_tokens import CODE
from ggshell.syntax.expression_tree import Call, Column, Expression, Literal
from ggshell.syntax.suggest import did_you_mean

HEADER_COLUMNS = {
    "GGS_TRANS_TIMESTAMP": "COMMITTIMESTAMP",
    "GGS_TRANS_RBA": "LOGRBA",
    "GGS_OP_TYPE": "OPTYPE",
    "GGS_BEFORE_AFTER_IND": "BEFOREAFTERINDICATOR",
}
_SIDES = {"": Side.PLAIN, "BEFORE": Side.BEFORE, "AFTER": Side.AFTER}


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands.

    ``queries``: names whose results may be read; ``key``: the columns that find a row (@RANGE); ``length`` and ``family``:
    of the target column, where the expression is for one.
    """

    definition: TableDefinition
    environment: Environment
    queries: frozenset[str] = frozenset()
    key: tuple[int, ...] = ()
    length: int | None = None
    family: str | None = None
    source: str = field(default="", compare=False)

    def compile(self, tree: Expression) -> Node:
        from ggshell.columns.compiler import compile_expression

        return compile_expression(tree, self)

    def all(self, trees: Iterable[Expression]) -> list[Node]:
        return [self.compile(tree) for tree in trees]

    def column(self, name: Column) -> Node:
        """What a name stands for.  Raises StatementError for an unknown one."""
        side = _SIDES.get(name.qualifier.upper())
        if side is None or (not name.qualifier and self.is_query(name.qualifier)):
            return self.result(name)
        return self._of_side(name, side)

    def _of_side(self, name: Column, side: Side) -> Node:
        index = self.index(name)
        if index is not None:
            return nodes.column(index, self.definition.columns[index].type_name, side)
        header = HEADER_COLUMNS.get(name.name.upper())
        if header is not None and side is Side.PLAIN:
            words = tuple(Literal(word, name.span) for word in ("GGHEADER", header))
            return self.compile(Call("GETENV", words, name.span))
        if name.quoted and side is Side.PLAIN:
            return nodes.constant(name.name, literal=True)  # older files write texts so
        known = {column.name for column in self.definition.columns}
        hint = did_you_mean(name.name, known) or "a text stands in single quotes"
        return self.refuse(f"table {self.definition.name} has no column {name.name}", name, hint)

    def side(self, tree: Expression, side: Side) -> Node:
        """A column's value in one of the row's images."""
        if not isinstance(tree, Column) or tree.qualifier:
            self.refuse("a column's name stands here", tree)
        return self._of_side(tree, side)

    def index(self, name: Column) -> int | None:
        """The index of a column: the same name, or the only one that differs in case."""
        names = [column.name for column in self.definition.columns]
        if name.name in names:
            return names.index(name.name)
        lowered = [each.lower() for each in names]
        wanted = name.name.lower()
        return lowered.index(wanted) if lowered.count(wanted) == 1 else None

    def is_query(self, name: str) -> bool:
        return name.lower() in self.queries

    def result(self, name: Column) -> Node:
        """A column of a query's result."""
        query, wanted = name.qualifier.lower(), name.name.lower()
        if query not in self.queries:
            hint = did_you_mean(name.qualifier, self.queries) or "SQLEXEC (ID name, …) gives a query a name"
            self.refuse(f"no SQLEXEC is called {name.qualifier or name.name}", name, hint)

        def evaluate(rows: Rows) -> list[Value]:
            found = rows.results.get(query)
            return [each.get(wanted, State.MISSING) for each in found] if found else [State.MISSING] * len(rows)

        return Node(evaluate, textual=True)

    def refuse(self, message: str, tree: Expression, hint: str = "", page: str = "") -> NoReturn:
        raise StatementError(message, code=CODE, column=tree.span[0] + 1, source=self.source, hint=hint, page=page)
