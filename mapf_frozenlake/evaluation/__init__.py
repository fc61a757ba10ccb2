"""``evaluate``: a policy of any form, a suite, and the table of its results.

forms.py       a policy's answers: solver, text or neural
reply_file.py  the file of answers, so that a run on a paid model can continue after a stop
record.py      the result on one instance
table.py       rates, intervals, failure kinds and regret, by agents, size, wait subset and hole ratio
protocol.py    what path finding is measured on: maps, numbers of agents, rules
measure.py     plays and measures a protocol's episodes; path_table.py, path_plot.py show them
reference.py   the published figures of "From Trainee to Trainer", as rows marked as theirs
"""

from mapf_frozenlake.evaluation.online_pibt import OnlinePIBT
from mapf_frozenlake.evaluation.path_table import PathTable
from mapf_frozenlake.evaluation.protocol import PROTOCOLS, PathProtocol
from mapf_frozenlake.evaluation.record import Record
from mapf_frozenlake.evaluation.row import Row
from mapf_frozenlake.evaluation.run import evaluate
from mapf_frozenlake.evaluation.table import EvaluationTable

__all__ = ["PROTOCOLS", "EvaluationTable", "OnlinePIBT", "PathProtocol", "PathTable", "Record", "Row", "evaluate"]
