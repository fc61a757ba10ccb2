"""The environments that the loop can train on: ``make_world`` gives one by its name.

``world`` says what the loop needs of an environment, ``episodes`` what is kept of a played case, ``text_player`` plays many
conversations at once.
"""

from envtuning.worlds.registry import WORLDS, UnknownWorld, make_world

__all__ = ["WORLDS", "UnknownWorld", "make_world"]
