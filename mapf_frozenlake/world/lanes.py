"""Vector instructions that read several neighbouring cells at once and write their observation.

A window's rows are short, and compilers copy short rows cell by cell. ``mark8`` (``mark4``, ``mark1``) reads 8 (4, 1) cells
and writes all four planes of their observation; ``ground8`` writes only the terrain's plane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mapf_frozenlake.numba_private import cgutils

_CACHE_LINE = 64  # bytes


def _marker(lanes: int) -> Any:
    @intrinsic
    def mark(typing_context, terrain, occupant, owner, at, out, to, area, me, lower, higher):
        """For ``lanes`` cells from ``at``, write out[to + plane · area …]:

        plane 0  lower if the terrain is not ice
        plane 1  lower under an agent with a lower number, higher under one with a higher number
        plane 2  lower on the agent's own goal
        plane 3  lower on another agent's goal

        ``me`` is 1 + the agent, as in ``occupant`` and ``owner`` (0: no agent); ``lower`` and ``higher`` are values of out's type.
        """
        signature = types.void(terrain, occupant, owner, at, out, to, area, me, lower, higher)

        def generate(context, builder, signature, args):
            given = dict(
                zip(("terrain", "occupant", "owner", "at", "out", "to", "area", "me", "lower", "higher"), args)
            )
            kinds = dict(zip(given, signature.args))
            pen = _Pen(context, builder, lanes)
            at, to = given["at"], given["to"]
            ground = pen.load(kinds["terrain"], given["terrain"], at)
            standing = pen.load(kinds["occupant"], given["occupant"], at)
            goals = pen.load(kinds["owner"], given["owner"], at)
            me = pen.spread(builder.trunc(given["me"], standing.type.element))
            lower, higher = pen.spread(given["lower"]), pen.spread(given["higher"])
            nothing, nobody = ir.Constant(lower.type, None), ir.Constant(standing.type, None)
            somebody = builder.icmp_unsigned("!=", standing, nobody)
            mine = builder.icmp_signed("==", goals, me)
            theirs = builder.and_(builder.icmp_unsigned("!=", goals, nobody), builder.not_(mine))
            other = builder.select(builder.icmp_signed("<", standing, me), lower, higher)
            other = builder.select(builder.icmp_signed("==", standing, me), nothing, other)
            planes = (
                builder.select(builder.icmp_unsigned("!=", ground, ir.Constant(ground.type, None)), lower, nothing),
                builder.select(somebody, other, nothing),
                builder.select(mine, lower, nothing),
                builder.select(theirs, lower, nothing),
            )
            for plane in planes:
                pen.store(kinds["out"], given["out"], to, plane)
                to = builder.add(to, given["area"])
            return context.get_dummy_value()

        return signature, generate

    return mark


def _ground_marker(lanes: int) -> Any:
    @intrinsic
    def ground(typing_context, terrain, at, out, to, ink):
        """For ``lanes`` cells from ``at``, write out[to …]: ink (a value of out's type) if the number there is not 0, else 0."""
        signature = types.void(terrain, at, out, to, ink)

        def generate(context, builder, signature, args):
            kinds = signature.args
            pen = _Pen(context, builder, lanes)
            seen = pen.load(kinds[0], args[0], args[1])
            value = pen.spread(args[4])
            blocked = builder.icmp_unsigned("!=", seen, ir.Constant(seen.type, None))
            pen.store(kinds[2], args[2], args[3], builder.select(blocked, value, ir.Constant(value.type, None)))
            return context.get_dummy_value()

        return signature, generate

    return ground


@intrinsic
def expect_writes(typing_context, array, begin, end):
    """Prefetch array[begin:end] into the cache before it is written. The range may exceed the array, because nothing is read."""

    def generate(context, builder, signature, args):
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        for_writing, keep, data_cache = (ir.Constant(flag, value) for value in (1, 3, 1))
        step = context.get_constant(types.intp, _CACHE_LINE * 8 // kind.dtype.bitwidth)
        with cgutils.for_range_slice(builder, args[1], args[2], step) as (at, _):
            place = builder.bitcast(builder.gep(data, [at]), byte)
            builder.call(fetch, [place, for_writing, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


class _Pen:
    """Unaligned vector loads, stores and broadcasts."""

    def __init__(self, context: Any, builder: ir.IRBuilder, lanes: int) -> None:
        self.context, self.builder, self.lanes = context, builder, lanes

    def _place(self, kind: Any, array: Any, index: Any) -> tuple[Any, int]:
        data = self.context.make_array(kind)(self.context, self.builder, array).data
        element = self.context.get_data_type(kind.dtype)
        vector = ir.VectorType(element, self.lanes)
        return self.builder.bitcast(self.builder.gep(data, [index]), vector.as_pointer()), kind.dtype.bitwidth // 8

    def load(self, kind: Any, array: Any, index: Any) -> Any:
        pointer, align = self._place(kind, array, index)
        value = self.builder.load(pointer)
        value.align = align
        return value

    def store(self, kind: Any, array: Any, index: Any, value: Any) -> None:
        pointer, align = self._place(kind, array, index)
        self.builder.store(value, pointer).align = align

    def spread(self, value: Any) -> Any:
        vector = ir.VectorType(value.type, self.lanes)
        one = self.builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


mark8, mark4, mark1 = _marker(8), _marker(4), _marker(1)
ground8 = _ground_marker(8)
