"""``evaluate``: a policy of any form, a suite, and the table of its results.

forms.py       a policy's answers: solver, text or neural
reply_file.py  the file of answers, so that a run on a paid model can continue after a stop
record.py      the result on one instance
table.py       rates, intervals, failure kinds and regret, by agents, size, wait subset and hole ratio
reference.py   the published figures of "From Trainee to Trainer", as rows marked as theirs
"""

from mapf_frozenlake.evaluation.record import Record
from mapf_frozenlake.evaluation.row import Row
from mapf_frozenlake.evaluation.run import evaluate
from mapf_frozenlake.evaluation.table import EvaluationTable

__all__ = ["EvaluationTable", "Record", "Row", "evaluate"]
