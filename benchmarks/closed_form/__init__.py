"""Learners in closed form: they score an engineer on learners whose lacks are known.

``families`` draws learners, ``learners`` trains them, ``reports`` writes an engineer's reports about them, as in a run.
"""
