"""Learners in closed form: how an engineer does where it is known what every learner lacks.

``families`` draws learners, ``learners`` trains them, ``reports`` tells an engineer about them as a run would.
"""
