"""The atlas: a tree of stages, trained once and stored, in which any engineer is scored in seconds.

Read in this order: ``spec`` (what a tree is made of), ``build`` (how it is trained), ``store`` (how it is kept), ``menu`` and
``distance`` (how an engineer's answer becomes a path through it), ``walk`` and ``score`` (how good the path is).
"""
