"""The interactive shell: statements from a terminal or a pipe, asked of one graph.

Parses, calls and renders as the verbs do. Nothing of it is imported before a shell is started.
"""
