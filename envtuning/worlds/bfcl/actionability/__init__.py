"""How actionable are a tool's messages? A measure without a model: of fault localisation, given the plan.

A scripted reader carries out a task's ground truth with one typed fault in it. It may look any one thing up again (an argument, a
tool's name, a call that it left out), but where to look it learns from the messages alone. What it recovers from is what the
messages told it. This says nothing of how well a language model reads.
"""
