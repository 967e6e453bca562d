"""The command line: verbs, options, output. Thin: parse, call, render.

Must never contain engine logic, and must import nothing heavy before a verb
needs it.
"""
