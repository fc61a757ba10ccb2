"""Takes the pictures of docs/worlds.md: a run of an example world, its report page opened in Chromium.

python -m examples.page_pictures mountain_car                    # the whole run, two minutes
.venv-worlds/bin/python -m examples.page_pictures minigrid       # after `make worlds`
"""

import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from PIL import Image

from examples.pictures import IMAGES

SHORT = {
    "mountain_car": {},
    "minigrid": {"suites.test_per_slice": 20} | {f"stages.{number}.budget": 25_000 for number in range(4)},
}
WIDTH = 1000
HEIGHT = {"mountain_car": 1700, "minigrid": 2620}  # with the failed cases that MiniGrid's world draws
COLOURS = 64  # of a page's few: a picture of some 50 kB


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = import_module(f"examples.own_world_{name}").main("rules", str(Path(folder) / name), **SHORT[name])
        print(take(page, IMAGES / f"page_{name}.png", HEIGHT[name]))


def take(page: Path, to: Path, height: int) -> Path:
    """The page's upper part, as Chromium paints it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("no chromium here: install chromium or google-chrome")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{height}"]
    with tempfile.TemporaryDirectory() as profile:
        where = [f"--user-data-dir={profile}", f"--screenshot={to}", page.resolve().as_uri()]
        subprocess.run([chromium, *flags, *where], check=True, capture_output=True, timeout=120)
    Image.open(to).convert("RGB").quantize(COLOURS).save(to, optimize=True)
    return to


if __name__ == "__main__":
    main(sys.argv[1])
