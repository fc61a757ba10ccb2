"""Private names of other libraries that trainees use, a file for each library. Nothing else reaches into a library.

A new version of a library may change its private names. Each file says which version it was ``TESTED`` with, and lists the ``NAMES``
by class; a test fails with a sentence if the installed version lacks one.
"""
