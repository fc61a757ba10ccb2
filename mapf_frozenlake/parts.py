"""How parts are compiled: functions that only compiled code calls become machine code together with their callers.

Numba optimises every function with all that it calls, so a part would be optimised once for itself and once more on every
level of calls above it, and would be made machine code that nobody runs. Here a part is handed to its callers as it was
written, which takes about half of the time. Its callers' caches hold it; it has none of its own.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder


class PartCompiler(CompilerBase):
    """Numba's own way from Python to LLVM's language; what happens then is the library's part."""

    def define_pipelines(self) -> list[Any]:
        self.state["library"] = _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _PartLibrary(JITCodeLibrary):
    """A part and what it calls, for its callers to take in: not optimised, never run from here."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)

    def _optimize_functions(self, module: Any) -> None:
        """As much as it takes for counts of references to be seen to cancel out; the rest is done in the caller."""
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
    """A code generator for what has no place in memory that its Python environment could be written to."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: object) -> None:
        pass


PART = {"pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
