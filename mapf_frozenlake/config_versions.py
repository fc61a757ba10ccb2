"""The current config and its version, for one process or for all processes that read one file."""

from __future__ import annotations

import json
from pathlib import Path

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.whole_file import write_whole

FORMAT = 1


class ConfigVersions:
    """The config in force in this process, its version, and the number of late rows."""

    def __init__(self) -> None:
        self._now: tuple[int, LakeConfig] | None = None
        self._late = 0

    def in_force(self) -> tuple[int, LakeConfig]:
        if self._now is None:
            raise LakeError("there is no current config: call put first")
        return self._now

    def put(self, config: LakeConfig) -> None:
        """Make this config the next version. A config that is in force already changes nothing, so every process may call this."""
        version, now = self._now or (0, None)
        if config != now:
            self._now = version + 1, config

    def count_late(self, rows: int) -> None:
        self._late += rows

    def late(self) -> int:
        return self._late


class ConfigFile(ConfigVersions):
    """The same, shared by a file. The file is replaced as a whole; ``FILE.late`` has a line for each batch with late rows."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path).absolute()
        self._late_path = self.path.with_name(self.path.name + ".late")

    def in_force(self) -> tuple[int, LakeConfig]:
        try:
            held = json.loads(self.path.read_bytes())
            if held["format"] != FORMAT:
                raise LakeError(f"{self.path} has format {held['format']!r:.20}, this version reads {FORMAT}")
            return int(held["version"]), LakeConfig.model_validate(held["config"])
        except LakeError:
            raise
        except FileNotFoundError:
            raise LakeError(f"{self.path} does not exist: give a config to start with") from None
        except (ValueError, KeyError, TypeError) as error:
            raise LakeError(f"{self.path} holds no config and its version: {str(error).splitlines()[0]:.100}") from None

    def put(self, config: LakeConfig) -> None:
        self._now = self.in_force() if self.path.exists() else None
        super().put(config)
        version, config = super().in_force()
        held = {"format": FORMAT, "version": version, "config": config.model_dump(mode="json")}
        write_whole(self.path, (json.dumps(held, indent=1) + "\n").encode())

    def count_late(self, rows: int) -> None:
        if rows:
            with open(self._late_path, "a", encoding="ascii") as file:
                file.write(f"{rows}\n")  # one short write, so that lines of several processes do not mix

    def late(self) -> int:
        return sum(map(int, self._late_path.read_text(encoding="utf-8").split())) if self._late_path.exists() else 0
