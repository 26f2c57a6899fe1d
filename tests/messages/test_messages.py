"""Messages are data, and each front end renders them with its own names."""

import ast
import pickle
from collections import defaultdict
from pathlib import Path

import pytest

import ulmus
from ulmus.exceptions import (
    BiasWarning,
    InputError,
    NoUndersmoothedFitError,
    UlmusWarning,
    warn,
)
from ulmus.messages import ANY, Message, Setting, invalid, named

SOURCE = Path(ulmus.__file__).parent


def shout(parameter, value=ANY, item=None):
    """A dialect in capitals that has no ``alpha``."""
    if parameter == "alpha":
        return None
    name = parameter.upper() if item is None else f"{parameter.upper()}/{item}"
    return name if value is ANY else f"{name}:{value}"


SMALL = Message(
    "small-ridge",
    "leaves no residual degrees of freedom",
    "alpha",
    0,
    (Setting("alpha", "loo"), Setting("n_neurons", phrase="use fewer {}"), "add rows"),
    topic="ridge",
)


def test_python_names_keyword_arguments():
    assert SMALL.render() == str(SMALL)
    assert SMALL.render() == (
        "alpha=0 leaves no residual degrees of freedom; use alpha='loo', use fewer n_neurons, or "
        "add rows."
    )


def test_a_dialect_drops_suggestions_that_it_lacks_and_keeps_the_cause():
    assert SMALL.render(shout) == (
        "alpha=0 leaves no residual degrees of freedom; use fewer N_NEURONS, or add rows."
    )
    assert SMALL.cause(shout) == "alpha=0 leaves no residual degrees of freedom"
    assert SMALL.suggestion(shout) == "use fewer N_NEURONS, or add rows"


def test_a_message_without_suggestions_is_one_clause():
    message = Message("a", "the table is empty")
    assert message.render() == "the table is empty."
    only = Message("a", "the table is empty", suggestions=(Setting("alpha", 1),))
    assert only.render(shout) == "the table is empty."


def test_settings_within_a_text_and_keys_of_a_parameter():
    message = Message("a", ("needs ", named("n_estimators"), " >= 3"), "variance", "S3")
    assert message.render() == "variance='S3' needs n_estimators >= 3."
    assert message.render(shout) == "VARIANCE:S3 needs N_ESTIMATORS >= 3."
    item = Message("a", "must be numbers", "variables", ["low"], item="t")
    assert item.render() == "variables['t']=['low'] must be numbers."
    assert item.render(shout) == "VARIABLES/t:['low'] must be numbers."


def test_python_may_have_words_of_its_own():
    setting = Setting("time", phrase="use {}", python="use noise=AR1()")
    message = Message("a", "errors are correlated", suggestions=(setting,))
    assert message.render() == "errors are correlated; use noise=AR1()."
    assert message.render(shout) == "errors are correlated; use TIME."


def test_an_invalid_value_stands_at_the_end():
    message = invalid("n_neurons", "must be a whole number >= 1", 0.5)
    assert message.render() == "n_neurons must be a whole number >= 1, got 0.5."
    assert (message.parameter, message.value) == ("n_neurons", 0.5)


def test_errors_carry_their_message():
    error = InputError(SMALL)
    assert isinstance(error, ValueError)
    assert str(error) == SMALL.render()
    assert (error.code, error.parameter, error.value) == ("small-ridge", "alpha", 0)
    assert error.suggestion == SMALL.suggestion()
    assert error.topic == "ridge"


@pytest.mark.parametrize("cls", [InputError, NoUndersmoothedFitError, BiasWarning])
@pytest.mark.parametrize("message", [SMALL, Message("open", "is open", "alpha")])
def test_errors_and_warnings_can_be_pickled(cls, message):
    again = pickle.loads(pickle.dumps(cls(message)))
    assert type(again) is cls
    assert str(again) == message.render()
    assert again.message == message
    assert (again.value is ANY) == (message.value is ANY)


def test_warnings_carry_their_message_and_show_where_they_come_from():
    with pytest.warns(BiasWarning, match="^alpha=0 leaves no residual") as caught:
        warn(SMALL, BiasWarning)
    (warning,) = caught
    assert isinstance(warning.message, UlmusWarning)
    assert warning.message.code == "small-ridge"
    assert warning.filename == __file__


def test_a_text_is_a_message_too():
    with pytest.warns(UlmusWarning, match="^rows repeat.$") as caught:
        warn("rows repeat.", UlmusWarning)
    assert caught[0].message.message.render(shout) == "rows repeat."


def test_errors_of_parameters_name_them():
    model = ulmus.ELMEnsembleRegressor(n_neurons=-3)
    with pytest.raises(InputError, match=r"n_neurons must be .*, got -3") as caught:
        model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert (caught.value.parameter, caught.value.value) == ("n_neurons", -3)


def literal_messages(path):
    """Codes and texts of the messages that a module makes, where both are literals."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Message":
            literal = [
                one for one in node.args[:2] if isinstance(one, (ast.Constant, ast.JoinedStr))
            ]
            if len(literal) == 2:
                yield tuple(map(ast.unparse, literal))


def test_a_code_has_one_text():
    texts = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        for code, text in literal_messages(path):
            texts[code].add(text)
    assert texts
    assert not {code: found for code, found in texts.items() if len(found) > 1}


def test_no_module_decides_on_the_text_of_an_error():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                assert not ast.unparse(node.comparators[0]).startswith("str(error"), path
