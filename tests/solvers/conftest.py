"""Makes the oracles and this folder's helpers importable by name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "oracles"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
