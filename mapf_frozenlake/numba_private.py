"""What this package uses of Numba beyond its documentation. If a new Numba lacks a name, this file alone has to change.

``NAMES`` and ``OF_A_KERNEL`` list it, so that a test can say which name is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import cgutils, types
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.event import Event, Listener, register
from numba.core.typing.npydecl import parse_dtype
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

__all__ = [
    "NO_COUNTS", "SUBKERNEL", "Dispatcher", "Event", "Listener", "TypingError", "array_at", "cgutils", "is_cached", "register",
    "stamp_caches",
]  # fmt: skip

NAMES = {  # module -> objects and their attributes
    "numba.core.caching": (
        "CompileResultCacheImpl._locator_classes",
        "IndexDataCacheFile.load",
        "_Cache",
        "_CacheLocator.from_function",
        "_CacheLocator.get_source_stamp",
    ),
    "numba.core.cgutils": ("for_range_slice", "unpack_tuple"),
    "numba.core.codegen": (
        "CPUCodegen._function_pass_manager",
        "JITCodeLibrary._finalize_dynamic_globals",
        "JITCodeLibrary._finalize_final_module",
        "JITCodeLibrary._optimize_final_module",
        "JITCodeLibrary._optimize_functions",
        "JITCodeLibrary._verify_declare_only_symbols",
        "JITCodeLibrary.codegen",
        "JITCodeLibrary.get_pointer_to_function",
    ),
    "numba.core.compiler": ("CompilerBase.define_pipelines", "DefaultPassBuilder.define_nopython_pipeline"),
    "numba.core.dispatcher": ("Dispatcher",),
    "numba.core.errors": ("TypingError",),
    "numba.core.event": ("Event", "Listener.on_start", "Listener.on_end", "register"),
    "numba.core.types": ("Array", "intp"),
    "numba.core.typing.npydecl": ("parse_dtype",),
    "numba.np.arrayobj": ("populate_array",),
}
OF_A_KERNEL = ("overloads", "py_func", "targetctx", "_cache._cache_file", "_cache._index_key")  # with njit(cache=True)

# -- options of njit ----------------------------------------------------------------------------------------------------

NO_COUNTS = {"_nrt": False}  # for functions that make no arrays: without reference counts


class SubkernelCompiler(CompilerBase):
    """Numba's own translation from Python to LLVM's language; the library below does the rest."""

    def define_pipelines(self) -> list[Any]:
        self.state["library"] = _SubkernelLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _SubkernelLibrary(JITCodeLibrary):
    """A subkernel and the functions that it calls, for its callers: not optimised, and never run from here."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)

    def _optimize_functions(self, module: Any) -> None:
        """Only the passes that cancel reference counts; the caller does the rest."""
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager(opt=1)
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _NoEnvironment:
    """A code generator for functions that have no memory in which to write their Python environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: object) -> None:
        pass


# For functions that only compiled code calls. Numba optimises every function together with all functions that it calls. So it
# would optimise a subkernel once for itself and again on every level of calls above it, and make machine code that is never run.
# Here, callers get a subkernel before optimisation, which takes about half of the time. Their caches hold it; it has no cache.
SUBKERNEL = {"pipeline_class": SubkernelCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# -- the cache of machine code ------------------------------------------------------------------------------------------


def stamp_caches(stamp_of: Callable[[Path], Callable[[], object] | None]) -> None:
    """Check the caches of kernels in a file by ``stamp_of(file)``, and no longer by the file's own time and size.

    The kernels stay valid while the result of ``stamp_of(file)()`` stays the same. For files where ``stamp_of`` is None, nothing
    changes.
    """

    class Locator:
        """Numba's own choice of a kernel's cache folder, with another stamp."""

        @classmethod
        def from_function(cls, function: Callable[..., Any], file: str) -> Any:
            stamp = stamp_of(Path(file))
            for usual in CompileResultCacheImpl._locator_classes if stamp is not None else ():
                locator = None if usual is cls else usual.from_function(function, file)
                if locator is not None:
                    locator.get_source_stamp = stamp
                    return locator
            return None

    CompileResultCacheImpl._locator_classes.insert(0, Locator)


def is_cached(compiled: Dispatcher, signature: tuple[Any, ...]) -> bool:
    """Whether this machine's cache has machine code for arguments of these types."""
    cache_of: Any = vars(compiled)["_cache"]
    cached = getattr(cache_of, "_cache_file", None)  # None: without a cache
    return cached is not None and cached.load(cache_of._index_key(signature, compiled.targetctx.codegen())) is not None


# -- arrays from addresses ----------------------------------------------------------------------------------------------


@intrinsic
def array_at(typing_context, address, shape, dtype):
    """The C-contiguous array of this shape and type that begins at an int64 address."""
    kind = types.Array(parse_dtype(dtype), len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        sides = cgutils.unpack_tuple(builder, args[1], kind.ndim)
        strides = [size]
        for side in reversed(sides[1:]):
            strides.insert(0, builder.mul(strides[0], side))
        data = builder.inttoptr(args[0], context.get_data_type(kind.dtype).as_pointer())
        populate_array(array, data=data, shape=sides, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    return kind(address, shape, dtype), generate
