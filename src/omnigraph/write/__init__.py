"""Writing: from statements and input rows to one published commit.

Every write captures a branch once, builds a change set, checks it, stages it as
detached commits and goes through one door. Must never make anything visible in
another way.
"""
