"""Type checking of `.gq`: from syntax to resolved blocks, columns and statements.

One module per part of a query. Reports every mistake it finds; what cannot be
typed is left out, so that one mistake causes one message.
"""
