"""The commands: run, resume, presets (``runs``); compare, study (``studies``); show, report, tensorboard, replay (``views``); pretrain, evaluate (``language``);
credit (``credit``); openenv (``openenv``).

``arguments`` is what they read, ``app`` the command line itself.
"""

# isort: off
from envtuning.cli import runs, studies, views, language, credit, openenv  # in the order of `envtuning --help`
# isort: on

from envtuning.cli.app import app
from envtuning.cli.arguments import adjusted, parse_seeds, run_name

__all__ = ["adjusted", "app", "credit", "language", "openenv", "parse_seeds", "run_name", "runs", "studies", "views"]
