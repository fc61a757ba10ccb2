"""Compiles subkernels, the functions that only compiled code calls, together with their callers.

Numba optimises every function together with all functions that it calls. So it would optimise a subkernel once for itself and
again on every level of calls above it, and make machine code that is never run. Here, callers get a subkernel before
optimisation, which takes about half of the time. Their caches hold it; a subkernel has no cache of its own.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder


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


SUBKERNEL = {"pipeline_class": SubkernelCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
