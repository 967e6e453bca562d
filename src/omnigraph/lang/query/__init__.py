"""The query language `.gq`: syntax, check, plan, parameters, lint."""
