"""The two languages: `.pg` schemas and `.gq` queries, from text to typed plan.

Reads as a pipeline: tokens, parser, syntax tree, check, plan. Pure functions
over text and frozen data: never does I/O, never imports Arrow or an engine.
"""
