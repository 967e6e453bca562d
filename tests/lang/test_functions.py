"""The registry of functions: what a call is, judged from the types of its arguments."""

from __future__ import annotations

import pytest

from omnigraph.lang.functions.kinds import common_type
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.functions.signature import Misuse, judge
from omnigraph.lang.types import Scalar, ValueType

_TYPES = {
    "String": ValueType(Scalar.STRING),
    "Bool": ValueType(Scalar.BOOL),
    "I32": ValueType(Scalar.I32),
    "I64": ValueType(Scalar.I64),
    "U64": ValueType(Scalar.U64),
    "F32": ValueType(Scalar.F32),
    "F64": ValueType(Scalar.F64),
    "Date": ValueType(Scalar.DATE),
    "DateTime": ValueType(Scalar.DATETIME),
    "Blob": ValueType(Scalar.BLOB),
    "enum": ValueType(Scalar.STRING, enum_values=("a", "b")),
    "[String]": ValueType(Scalar.STRING, is_list=True),
    "[I32]": ValueType(Scalar.I32, is_list=True),
    "[F64]": ValueType(Scalar.F64, is_list=True),
    "Vector(2)": ValueType(Scalar.VECTOR, dimension=2),
    "Vector(3)": ValueType(Scalar.VECTOR, dimension=3),
}


def type_of(name: str) -> ValueType:
    return _TYPES[name.removesuffix("?")].or_null(when=name.endswith("?"))


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("abs I32", "I64"),
        ("abs U64", "U64"),
        ("abs F32?", "F64?"),
        ("floor F64", "I64"),
        ("round F64", "I64"),
        ("round F64 I64", "F64"),
        ("round I32 I64", "F64"),
        ("sqrt I64", "F64?"),
        ("div I32 I64", "I64?"),
        ("div U64 I64", "U64?"),
        ("div F64 I64", "I64?"),
        ("min_of I32 F64", "F64"),
        ("max_of Date? Date", "Date?"),
        ("coalesce I32? I32", "I32"),
        ("coalesce I32? F64?", "F64?"),
        ("coalesce enum? String", "String"),
        ("if Bool? I32 I64", "I64"),
        ("if Bool String String?", "String?"),
        ("length enum", "I64"),
        ("split String? String", "[String]?"),
        ("contains [I32] F64", "Bool"),
        ("contains [String]? String", "Bool?"),
        ("first [I32]", "I32?"),
        ("slice [I32]? I64", "[I32]?"),
        ("sum_of [I32]", "I64?"),
        ("sum_of [F64]", "F64?"),
        ("truncate Date String", "Date"),
        ("plus_months DateTime? I64", "DateTime?"),
        ("days_between Date DateTime", "I64"),
        ("to_int String", "I64?"),
        ("to_int F64", "I64"),
        ("to_int U64?", "U64?"),
        ("to_bool Bool", "Bool"),
        ("to_date DateTime", "Date"),
        ("cosine Vector(2) [F64]", "F64?"),
        ("now", "DateTime"),
        ("today", "Date"),
    ],
)
def test_the_type_of_a_call(call: str, result: str) -> None:
    name, *arguments = call.split()
    judged = judge(FUNCTIONS[name], [type_of(one) for one in arguments])
    assert isinstance(judged, ValueType), judged
    assert str(judged) == result


@pytest.mark.parametrize(
    ("call", "message", "argument"),
    [
        ("abs", "abs takes 1 argument, found 0", None),
        ("round F64 I64 I64", "round takes 1 to 2 arguments, found 3", None),
        ("min_of I64", "min_of takes at least 2 arguments, found 1", None),
        ("now I64", "now takes no argument, found 1", None),
        ("lower I64", "lower expects a text as `s`, found I64", 0),
        ("hour Date", "hour expects a DateTime as `dt`, found Date", 0),
        ("round F64 F64", "round expects an integer as `digits`, found F64", 1),
        ("min_of I64 String", "the arguments of min_of must be of one kind", None),
        ("coalesce I64 String", "the arguments of coalesce must be of one kind", None),
        ("concat String I64", "concat expects a text as `a`, found I64", 1),
        (
            "contains [I32] String",
            "the arguments of contains must be two texts, or a list and a value of its kind",
            None,
        ),
        ("dot Vector(2) Vector(3)", "the arguments of dot must have as many numbers", None),
        ("coalesce Blob Blob", "coalesce expects a value as `a`, found Blob", 0),
    ],
)
def test_what_is_wrong_with_a_call(call: str, message: str, argument: int | None) -> None:
    name, *arguments = call.split()
    assert judge(FUNCTIONS[name], [type_of(one) for one in arguments]) == Misuse(message, argument)


def test_signatures_are_shown_as_calls() -> None:
    shown = {name: FUNCTIONS[name].signature for name in ("round", "concat", "now", "pad_left")}
    assert shown == {
        "round": "round(x[, digits])",
        "concat": "concat(a, …)",
        "now": "now()",
        "pad_left": "pad_left(s, n[, fill])",
    }


def test_every_function_tells_what_it_does() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.description.endswith("."), name
        assert "(" in function.example, name


def test_values_of_several_types_have_a_type_in_common() -> None:
    names = ["I32", "U64?"]
    assert str(common_type(map(type_of, names))) == "U64"
    assert str(common_type(map(type_of, ["[I32]", "[F64]"]))) == "[F64]"
    assert common_type(map(type_of, ["Date", "DateTime"])) is None
    assert common_type(map(type_of, ["I32", "[I32]"])) is None
