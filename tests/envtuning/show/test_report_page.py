"""The report page in a real browser: it loads, shows its charts and films, and asks nobody for anything."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engineers.report import Incident
from envtuning.errors import RunError
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.show.page import render_page, write_page
from envtuning.show.page.figures import arms_of
from envtuning.show.page.first_screen import first_screen
from envtuning.show.page.outcomes import slices_seen
from envtuning.show.page.view import view_run
from tests.envtuning.gym_worlds import CORRIDORS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=NetworkTimeServiceQuerying",
)
BROWSERS_OWN = ("clients2.google.com/time/",)  # Chromium sets its clock, whatever page it shows


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    spec = load_spec("scripted")
    paths = []
    for engineer in ("rules", "random"):
        one = spec.model_copy(update={"engineer": spec.engineer.model_copy(update={"name": engineer})})
        paths.append(start(one, folder / engineer).path)
    return paths


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory) -> Path:
    return write_page(runs, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def corridor_page(tmp_path_factory) -> Path:
    """Of a run in a world without boards and without films."""
    folder = tmp_path_factory.mktemp("corridor")
    return write_page([start(RunSpec.model_validate(CORRIDORS), folder / "run").path], folder / "report.html")


class Recorder(http.server.BaseHTTPRequestHandler):
    """Serves the page at /report.html and remembers everything that anybody asked of any host."""

    asked: list[str]
    body: bytes
    others: bytes = b""  # what any other address shows

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers.get('Host')}{self.path}")
        found = self.path == "/report.html"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.body if found else self.others)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def recorder(page) -> Iterator[http.server.ThreadingHTTPServer]:
    yield from served(page)


@pytest.fixture
def corridor_recorder(corridor_page) -> Iterator[http.server.ThreadingHTTPServer]:
    yield from served(corridor_page)


def served(page: Path) -> Iterator[http.server.ThreadingHTTPServer]:
    handler = type("Handler", (Recorder,), {"asked": [], "body": page.read_bytes()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


FRAME = """<iframe src="report.html" width="{width}" height="{height}" onload="
for (const id of ['trained-on', 'led-to', 'why']) {{
  const box = contentDocument.getElementById(id).getBoundingClientRect();
  document.body.append(['{width}', id, Math.round(box.right), Math.round(box.bottom), contentDocument.documentElement.scrollWidth].join(' ') + ' | ');
}}"></iframe>"""
SCREENS = ((1280, 800), (390, 844))


@pytest.mark.parametrize("which", ["runs", "no lake"])
def test_three_answers_are_on_the_first_screen(which, page, corridor_page, tmp_path):
    """What was trained on, what it led to and why it was changed: on a laptop and on a phone, without scrolling."""
    frames = "".join(FRAME.format(width=width, height=height) for width, height in SCREENS)
    handler = type(
        "Handler",
        (Recorder,),
        {"asked": [], "body": (page if which == "runs" else corridor_page).read_bytes(), "others": frames.encode()},
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = browse(server, tmp_path, "--dump-dom", page="frames.html")
    server.shutdown()
    found = re.findall(r"(\d+) (trained-on|led-to|why) (\d+) (\d+) (\d+) \|", told)
    assert len(found) == 6
    heights = dict(SCREENS)
    for width, _, right, bottom, whole in found:
        assert 0 < int(bottom) <= heights[int(width)]
        assert 0 < int(right) <= int(whole) <= int(width)


def test_the_first_screen_names_shares_outcome_and_reason(runs):
    view = view_run(RunLog.open(runs[0]))
    screen = first_screen([view], arms_of([view]))
    assert [part.name for part in screen.parts] == ["3×3", "4×4", "5×5"]
    (sentence,) = screen.outcomes
    tested = view.tested("valid_rate")
    assert f"{100 * tested[0]:.1f} % [" in sentence
    assert "valid in the test" in sentence
    stage = screen.decision.stage
    answered = {change.path: change for change in view.stages[stage - 1].answer.proposal.reasons}
    assert all(answered[change.path] == change and change.reason for change in screen.decision.changes)
    assert len(screen.decision.changes) + screen.decision.left_out == len(answered)


def test_a_dark_browser_gets_a_dark_page(recorder, tmp_path):
    colours = []
    for scheme in ("0", "1"):  # dark, light
        picture = tmp_path / f"{scheme}.png"
        settings = f"--blink-settings=preferredColorScheme={scheme}"
        browse(recorder, tmp_path, settings, f"--screenshot={picture}", "--window-size=800,600")
        colours.append(pytest.importorskip("PIL.Image").open(picture).convert("RGB").getpixel((3, 3)))
    assert colours == [(0x10, 0x20, 0x2D), (255, 255, 255)]


def browse(recorder, tmp_path: Path, *flags: str, page: str = "report.html") -> str:
    if CHROMIUM is None:
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail("REQUIRE_BROWSER is set and there is no chromium")
        pytest.skip("no chromium on this machine")
    port = recorder.server_address[1]
    command = [
        CHROMIUM,
        *QUIET,
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--host-resolver-rules=MAP * 127.0.0.1:{port}",  # whoever the page calls, we answer
        "--virtual-time-budget=3000",
        *flags,
        f"http://page.test/{page}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_browser_shows_it_and_nobody_is_asked(runs, recorder, tmp_path):
    text = browse(recorder, tmp_path, "--dump-dom")
    asked = [url for url in recorder.RequestHandlerClass.asked if not url.startswith(BROWSERS_OWN)]
    assert asked == ["page.test/report.html"]
    of_a_slice = 2  # what training showed, and its share
    of_a_run = 3 + of_a_slice * len(slices_seen(view_run(RunLog.open(runs[0]))))  # slices, success and gradient
    assert text.count('class="chart"') == 1 + 2 * of_a_run  # and the progress of both
    assert text.count("<animateTransform") >= 8  # agents that move
    assert text.count("<figure>") >= 8
    for words in ("rules", "random", "Test suite", "slices.5.share", "case "):
        assert words in text


def test_the_page_of_a_run_that_is_no_lake(corridor_recorder, tmp_path):
    text = browse(corridor_recorder, tmp_path, "--dump-dom")
    asked = [url for url in corridor_recorder.RequestHandlerClass.asked if not url.startswith(BROWSERS_OWN)]
    assert asked == ["page.test/report.html"]
    assert text.count('class="chart"') == 1 + 2  # progress; slices and success: this trainee reports no loss
    assert "9 cells" in text
    assert "Test suite" in text
    assert "<animateTransform" not in text  # no films
    for words in ("4×4", "hole", "agents", "optimal"):
        assert words not in text, words


def test_it_is_painted(recorder, tmp_path):
    picture = tmp_path / "page.png"
    browse(recorder, tmp_path, f"--screenshot={picture}", "--window-size=1200,2400")
    image = pytest.importorskip("PIL.Image").open(picture).convert("RGB")
    colours = {colour for _, colour in image.getcolors(1 << 24)}
    assert (0, 0x72, 0xB2) in colours  # the first run's line
    assert (0xD5, 0x5E, 0) in colours  # the second's
    assert len(colours) > 200


def test_no_address_but_the_svg_namespace(page):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_what_a_model_says_is_text_not_markup(runs):
    run = RunLog.open(runs[0])
    said = Incident(kind="other", message="<script>alert(1)</script><img src=//evil.test>", stage=0)
    run.state = replace(run.state, survived=(said,))
    text = render_page([view_run(run)])
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_comparison_has_its_table_on_the_page_of_its_runs(runs, tmp_path):
    arms = [tmp_path / "arms" / engineer / "seed0" for engineer in ("rules", "uniform")]
    for arm in arms:
        shutil.copytree(runs[0], arm)
    beside = tmp_path / "arms" / "comparison.json"
    table = {
        "title": "a <b>",
        "caption": "paired",
        "headings": ["engineer", "− uniform"],
        "rows": [["rules", "+1.0 ± 2.0"]],
    }
    beside.write_text(json.dumps({"table": table}), encoding="utf-8")
    page = write_page(arms, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>a &lt;b&gt;</h2>" in page
    assert '<td class="text">rules</td><td>+1.0 ± 2.0</td>' in page
    assert "+1.0" not in write_page(arms[:1], tmp_path / "page.html").read_text(encoding="utf-8")
    of_one_engineer = [shutil.copytree(arms[0], arms[0].with_name(f"seed{seed}")) for seed in (1, 2)]
    assert "+1.0" in write_page(of_one_engineer, tmp_path / "page.html").read_text(encoding="utf-8")
    elsewhere = shutil.copytree(arms[0], tmp_path / "others" / "rules" / "seed0")
    assert "+1.0" not in write_page([*arms, elsewhere], tmp_path / "page.html").read_text(encoding="utf-8")
    beside.write_text("{}", encoding="utf-8")
    assert 'id="comparison"' not in write_page(arms, tmp_path / "page.html").read_text(encoding="utf-8")
    for damaged in ('{"tab', "[]", '{"table": 1}', '{"table": {"title": 1}}', "[" * 5000):
        beside.write_text(damaged, encoding="utf-8")
        with pytest.raises(RunError, match=r"comparison\.json .*: remove it, and it is made again"):
            write_page(arms, tmp_path / "page.html")


def test_an_unfinished_run_has_a_page(runs, tmp_path):
    half = tmp_path / "half"
    shutil.copytree(runs[0], half)
    for left_out in ("test.json", "stages/03"):
        path = half / left_out
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (half / "stages" / "02" / "done.json").unlink()
    assert "not finished" in write_page([half], tmp_path / "half.html").read_text(encoding="utf-8")
