"""``UserError``: the base class of errors that a command prints as a sentence, without a traceback."""


class UserError(Exception):
    """An error that the user can correct; the message is a sentence that says how."""
