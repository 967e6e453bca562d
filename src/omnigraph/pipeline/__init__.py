"""Everything on Spark: the only package that imports `pyspark`, and itself imported lazily."""
