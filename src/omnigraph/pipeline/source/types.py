"""Types: what Spark calls the types of properties.

Owns the mapping. Every value of a property fits the Spark type of its column.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as spark

from omnigraph.lang.types import Scalar, ValueType
from omnigraph.pipeline.source.selection import SourceColumn, TypeSelection

# Spark has no unsigned numbers: the next wider type, and decimals where there is none.
_SCALARS: Mapping[Scalar, spark.DataType] = {
    Scalar.STRING: spark.StringType(),
    Scalar.BLOB: spark.BinaryType(),
    Scalar.BOOL: spark.BooleanType(),
    Scalar.I32: spark.IntegerType(),
    Scalar.I64: spark.LongType(),
    Scalar.U32: spark.LongType(),
    Scalar.U64: spark.DecimalType(20, 0),
    Scalar.F32: spark.FloatType(),
    Scalar.F64: spark.DoubleType(),
    Scalar.DATETIME: spark.TimestampType(),
    Scalar.DATE: spark.DateType(),
    Scalar.VECTOR: spark.ArrayType(spark.FloatType(), containsNull=False),
}


def spark_type(type_: ValueType) -> spark.DataType:
    """The type of a column that holds values of a type."""
    scalar = _SCALARS[type_.scalar]
    return spark.ArrayType(scalar, containsNull=False) if type_.is_list else scalar


def spark_field(column: SourceColumn) -> spark.StructField:
    """The field of a column."""
    return spark.StructField(column.name, spark_type(column.type), column.nullable)


def spark_schema(selection: TypeSelection) -> spark.StructType:
    """The fields of all selected columns."""
    return spark.StructType(list(map(spark_field, selection.columns)))
