"""The functions of the query language, as data: what they take, what they give, what they mean.

One registry for the checker, the evaluator, editors and the documentation. Evaluates nothing.
"""
