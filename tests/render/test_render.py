"""Pictures show what is there: every agent, goal and violation, in text, pixels, SVG and films."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.render import Window, animated_svg, ansi, rgb_array, save_animation, svg
from mapf_frozenlake.render.palette import agent_colour
from mapf_frozenlake.types import Event
from mapf_frozenlake.world.snapshot import Snapshot

PIL = pytest.importorskip("PIL.Image")


def snapshot(num_agents=3, size=8, events=None, actions=None, step=0):
    cells = np.stack(np.divmod(np.random.default_rng(num_agents).permutation(size * size), size), 1).astype(np.int16)
    holes = np.zeros((size, size), bool)
    holes[tuple(cells[2 * num_agents : 2 * num_agents + size].T)] = True
    starts, goals = cells[:num_agents], cells[num_agents : 2 * num_agents]
    return Snapshot(holes, starts, goals, starts, actions, events, step=step, horizon=64)


def film():
    first = snapshot(num_agents=2, size=5)
    second_positions = first.positions + np.array([[0, 0], [0, 0]], np.int16)
    events, actions = np.array([Event.OFF_BOARD, Event.HOLE], np.int8), np.array([0, 1], np.int8)
    second = Snapshot(first.holes, second_positions, first.goals, first.starts, actions, events, step=1)
    return [first, second]


def test_colours_differ():
    assert len({agent_colour(agent) for agent in range(64)}) == 64


@pytest.mark.parametrize("num_agents", [2, 8, 64])
def test_ansi_shows_every_agent_and_goal(num_agents):
    text = ansi(snapshot(num_agents, size=16), colour=False)
    for agent in range(num_agents):
        assert f"[{agent}]" in text
        assert f"<{agent}>" in text
    assert text.count("O") == 16
    assert len(text.splitlines()) == 17


def test_ansi_names_what_happened():
    text = ansi(film()[1], colour=False)
    assert "0:LEFT 1:DOWN" in text
    assert "! 0:OFF_BOARD 1:HOLE" in text


@pytest.mark.parametrize(("num_agents", "size"), [(1, 2), (2, 4), (8, 8), (64, 32), (64, 64)])
def test_pixels_show_every_agents_colour(num_agents, size):
    moment = snapshot(num_agents, size)
    pixels = rgb_array(moment)
    assert pixels.dtype == np.uint8
    assert max(pixels.shape) <= 1200
    assert np.array_equal(pixels, rgb_array(moment))
    scale = pixels.shape[1] / (size + 1.2)
    for agent, (row, col) in enumerate(moment.positions.tolist()):
        # left of the number, still on the agent's disc
        x, y = round((col + 0.5 + 0.6 - 0.24) * scale), round((row + 0.5 + 0.6) * scale)
        near = pixels[y - 1 : y + 2, x - 1 : x + 2].reshape(-1, 3).astype(int)
        wanted = [int(agent_colour(agent)[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(near - wanted).sum(1).min() < 60


def test_violations_are_seen():
    calm = film()[1]
    events = np.zeros(2, np.int8)
    without = Snapshot(calm.holes, calm.positions, calm.goals, calm.starts, calm.actions, events)
    assert not np.array_equal(rgb_array(calm), rgb_array(without))


def test_svg_is_well_formed_and_self_contained():
    for text in (svg(snapshot()), animated_svg(film())):
        root = ElementTree.fromstring(text)
        assert root.tag.endswith("svg")
        assert "href" not in text
        assert "<script" not in text
        assert set(re.findall(r"https?://\S+?\"", text)) == {'http://www.w3.org/2000/svg"'}


def test_key_times_rise_from_0_to_1():
    for times in re.findall(r'keyTimes="([^"]+)"', animated_svg(film() * 4)):
        numbers = [float(number) for number in times.split(";")]
        assert numbers[0] == 0
        assert numbers == sorted(numbers)
        assert numbers[-1] <= 1


def test_save_animation(tmp_path):
    assert save_animation(tmp_path / "a.svg", film()).read_text().startswith("<svg")
    with PIL.open(save_animation(tmp_path / "a.gif", film())) as picture:
        assert picture.n_frames == 2
    with pytest.raises(LakeError, match=r"a\.mp4: an animation is saved as \.gif or \.svg"):
        save_animation(tmp_path / "a.mp4", film())
    with pytest.raises(LakeError, match="0 frames"):
        save_animation(tmp_path / "a.svg", [])


def test_the_window_opens_and_closes(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = Window(fps=1000)
    window.show(snapshot())
    window.show(snapshot(size=6))
    window.close()
    window.close()


def test_importing_the_renderers_loads_no_drawing_library():
    code = "import sys, mapf_frozenlake.render; assert not {'PIL', 'pygame', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
