"""``Mendable``: the one class of errors that a command tells in a sentence, without a traceback."""


class Mendable(Exception):
    """What whoever runs this can mend; the message is a sentence that says how."""
