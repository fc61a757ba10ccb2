"""A world's text environment as an OpenEnv server.

A trainer needs ``models`` and ``client``, which are copied unchanged into an exported folder; ``environment`` is one session,
``app`` the server, ``export`` the folder.
"""
