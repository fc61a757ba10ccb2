"""Every one-line mutant of a module: a comparison turned, a number changed, a branch or an argument left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One place of one line, written otherwise."""

    path: str  # within the project
    line: int  # 1-based
    start: int  # bytes of the line
    end: int
    new: str

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (line[: self.start] + self.new.encode() + line[self.end :]).decode()
        return "".join(lines)


COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
CALCULATED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Every one-line mutant of a module, in the order of its text. None of them breaks its syntax."""
    tree = ast.parse(text)
    ignored = _prose(tree)
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        for mutant in _of_node(path, node):
            try:
                ast.parse(mutant.apply(text))
            except SyntaxError:
                continue
            yield mutant


def _of_node(path: str, node: ast.AST) -> Iterator[Mutant]:
    def instead(of: ast.expr | ast.stmt, new: str) -> Iterator[Mutant]:
        if of.lineno == of.end_lineno:
            assert of.end_col_offset is not None
            yield Mutant(path, of.lineno, of.col_offset, of.end_col_offset, new)

    def source(one: ast.expr) -> str:
        return f"({ast.unparse(one)})"

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from instead(node, f"({source(node.left)} {COMPARED[type(node.ops[0])]} {source(node.comparators[0])})")
    elif isinstance(node, ast.BoolOp):
        for left_out in node.values:
            kept = [value for value in node.values if value is not left_out]
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield from instead(node, f"({word.join(map(source, kept))})")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from instead(node, source(node.operand))
    elif isinstance(node, ast.BinOp) and type(node.op) in CALCULATED and not _about_text(node):
        yield from instead(node, f"({source(node.left)} {CALCULATED[type(node.op)]} {source(node.right)})")
    elif isinstance(node, ast.IfExp):
        yield from instead(node, source(node.body))
        yield from instead(node, source(node.orelse))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from instead(node, str(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from instead(node, repr(node.value + 1))
    elif isinstance(node, ast.Call) and node.keywords:
        for left_out in node.keywords:
            if left_out.arg not in (None, "description", "help"):  # whole sentences for readers
                kept_words = [word for word in node.keywords if word is not left_out]
                shorter = ast.Call(func=node.func, args=node.args, keywords=kept_words)
                yield from instead(node, ast.unparse(shorter))
    elif isinstance(node, ast.AugAssign | ast.Break | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield from instead(node, "pass")


def _about_text(node: ast.BinOp) -> bool:
    """Whether a text stands on one side: joined texts and paths, which fail at once when they are calculated otherwise."""
    texts = [side for side in (node.left, node.right) if isinstance(side, ast.JoinedStr | ast.Constant)]
    return any(isinstance(side, ast.JoinedStr) or isinstance(side.value, str) for side in texts)


def _prose(tree: ast.AST) -> set[int]:
    """Nodes that no test can tell apart: annotations, messages of errors, descriptions, decorators, f-strings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        hidden: list[ast.AST] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden += [*node.decorator_list, *([node.returns] if node.returns else [])]
            hidden += [
                argument.annotation
                for argument in ast.walk(node.args)
                if isinstance(argument, ast.arg) and argument.annotation
            ]
        elif isinstance(node, ast.ClassDef):
            hidden += node.decorator_list
        elif isinstance(node, ast.AnnAssign):
            hidden.append(node.annotation)
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            hidden += list(ast.iter_child_nodes(node))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            hidden.append(node)
        for one in hidden:
            found.update(id(inside) for inside in ast.walk(one))
    return found
