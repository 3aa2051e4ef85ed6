"""What a field of a record says of itself holds in the check of a body, the struct of a report and the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
import pytest

from infosvc.data.structs import make_struct
from infosvc.http.api.body import Fields, read
from infosvc.http.api.restx import Namespace
from infosvc.http.calls import CALLS
from infosvc.http.openapi.examples import example_of
from infosvc.http.openapi.schemas import answer_model, answer_schema, body_model
from infosvc.wire.errors import InvalidInput
from infosvc.wire.fields import POSITIVE, Limits, answer_of, describe, describe_property, fields_of
from tests.infosvc.schemas import against


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Wheel:
    spokes: int = field(metadata=describe(limits=Limits(least=1, most=40), example=28))


@dataclass(frozen=True)
class Cart:
    """A body of every kind of field."""

    name: str = field(metadata=describe("what it is called", limits=Limits(shortest=1, longest=8), example="a"))
    colour: Colour
    size: float = field(metadata=describe("from end to end", unit="metres", limits=POSITIVE, example=2.5))
    built: int = field(default=0, metadata=describe(sent=False, example=1900))
    seats: int = field(default=2, metadata=describe(limits=Limits(least=0, most=9)))
    load: float | None = field(default=None, metadata=describe(limits=Limits(least=0)))
    open: bool = False
    code: str = field(default="", metadata=describe(limits=Limits(longest=3, pattern="^[a-z]*$", form="small letters")))
    notes: Mapping[str, str] | None = field(
        default=None, metadata=describe(limits=Limits(longest=2), keys=Limits(longest=2), each=Limits(longest=3))
    )
    wheels: Sequence[Wheel] = field(default=(), metadata=describe(limits=Limits(longest=2), required=True))


GOOD: dict[str, Any] = {"name": "cart", "colour": "red", "size": 2.5, "wheels": [{"spokes": 28}]}
WRONG: list[dict[str, Any]] = [
    {"name": ""},
    {"name": "far too long"},
    {"name": 3},
    {"colour": "green"},
    {"size": 0},
    {"size": "2"},
    {"seats": -1},
    {"seats": 10},
    {"load": -1},
    {"open": "yes"},
    {"code": "A"},
    {"code": "abcd"},
    {"notes": {"abc": "x"}},
    {"notes": {"a": "long"}},
    {"notes": {"a": "", "b": "", "c": ""}},
    {"wheels": [{"spokes": 0}]},
    {"wheels": [{"spokes": 1}] * 3},
]
MISSING = [{key: value for key, value in GOOD.items() if key != name} for name in GOOD]
OTHERWISE_READ = {"notes", "wheels"}  # fields of reports, which the struct alone reads


def schemas(record: type, *, sent: bool = True) -> tuple[Any, dict[str, Any]]:
    """The model of a record, and all models that it needs."""
    ns = Namespace("carts")
    model = (body_model if sent else answer_model)(ns, record)
    return model, {name: found.__schema__ for name, found in ns.models.items()}


@pytest.mark.parametrize("body", [GOOD | one for one in WRONG] + MISSING, ids=repr)
def test_what_the_struct_refuses_the_document_refuses_too(body: dict[str, Any]) -> None:
    model, models = schemas(Cart)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(body), type=make_struct(Cart))
    # JSON Schema 4 has no limit for the keys of an object.
    assert against(model.__schema__, body, models) or body.get("notes") == {"abc": "x"}


@pytest.mark.parametrize("wrong", [one for one in WRONG if not OTHERWISE_READ & set(one)], ids=repr)
def test_what_the_document_refuses_the_check_of_a_body_refuses_by_name(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    (found,) = [one for one in fields_of(Cart) if one.name == name]
    with pytest.raises(InvalidInput, match=f"{name} is .*: it must be ") as caught:
        Fields(GOOD | wrong).take(found)
    assert caught.value.field == name


def test_a_good_body_is_taken_by_all_three() -> None:
    model, models = schemas(Cart)
    assert against(model.__schema__, GOOD, models) == []
    cart = msgspec.json.decode(msgspec.json.encode(GOOD), type=make_struct(Cart))
    assert (cart.name, cart.colour, cart.seats, cart.load, cart.wheels[0].spokes) == ("cart", Colour.RED, 2, None, 28)
    assert Fields(GOOD).take(fields_of(Cart)[2]) == 2.5


def test_a_body_becomes_its_record_and_null_is_refused_where_nothing_can_be_null() -> None:
    assert read(Wheel, Fields({"spokes": 3})) == Wheel(3)
    with pytest.raises(InvalidInput, match=r"^spokes is missing$"):
        read(Wheel, Fields({}))
    with pytest.raises(InvalidInput, match=r"^spokes is null: give a value"):
        read(Wheel, Fields({"spokes": None}))


def test_help_unit_and_defaults_stand_in_the_document() -> None:
    model, models = schemas(Cart)
    said = model.__schema__["properties"]
    assert model.name == "CartBody" and "built" not in said
    assert said["size"]["description"] == "metres from end to end" and said["size"]["x-unit"] == "metres"
    assert (said["seats"]["default"], said["open"]["default"]) == (2, False)
    assert model.__schema__["required"] == ["name", "colour", "size", "wheels"]
    assert models["Wheel"]["properties"]["spokes"]["maximum"] == 40


def test_an_answer_has_every_field() -> None:
    model, _ = schemas(Cart, sent=False)
    assert model.name == "Cart"
    assert model.__schema__["required"] == [one.name for one in fields_of(Cart)]
    assert not [name for name, one in model.__schema__["properties"].items() if "default" in one]


@dataclass(frozen=True)
class Trip:
    """An answer that works something out, calls a field otherwise, keeps one back, and may hold one of two records."""

    metres: float = field(metadata=describe(unit="metres", name="length", example=3.0))
    driver: str = field(metadata=describe(answered=False))
    stops: tuple[Wheel | Cart, ...]
    wheel: Wheel | None = field(metadata=describe("the one that broke", example=None))

    @property
    @describe_property("of the way", unit="kilometres", example=0.003)
    def kilometres(self) -> float:
        return self.metres / 1000


def test_an_answer_is_made_by_what_its_record_says_and_its_schema_allows_no_other() -> None:
    models: dict[str, Any] = {}
    schema = answer_schema(models, Trip)
    answer = answer_of(Trip(3.0, "me", (Wheel(3), Cart("a", Colour.RED, 1.0)), Wheel(4)))

    assert list(answer) == ["length", "stops", "wheel", "kilometres"]
    assert (answer["kilometres"], answer["stops"][1]["colour"]) == (0.003, "red")
    assert against(schema, answer, models, closed=True) == []
    assert against(schema, answer | {"wheel": None}, models, closed=True) == []
    assert models["Trip"]["properties"]["kilometres"]["x-unit"] == "kilometres"
    wrong: list[dict[str, Any]] = [
        {"wheel": {}},
        {"wheel": 3},
        {"stops": [{}]},
        {"stops": [{"spokes": 3, "name": "a"}]},
        {"length": None},
    ]
    for one in wrong:
        assert against(schema, answer | one, models, closed=True), one
    assert example_of(schema, models)["stops"] == [{"spokes": 28}]


def test_two_answers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two models have the name Wheel"):
        answer_schema({"Wheel": {"type": "object"}}, Trip)


def test_every_model_of_the_service_is_made_from_a_record() -> None:
    found = [group.namespace for group in CALLS if group.namespace and group.namespace.models]
    assert len(found) >= 7
    for namespace in found:
        kinds = {type(model).__name__ for model in namespace.models.values()}
        assert kinds == {"SchemaModel"}, namespace.path
