"""Running a plan: operators over bindings, expressions, grouping and ordering."""
