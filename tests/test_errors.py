"""Every error class: survives pickle, has a code of its own and an exit status of the table."""

import contextlib
import json
import pickle
import types
import typing

import pytest

from tests.every import check_every
from trtplug import errors

EXIT_STATUSES = {
    errors.GATE_FAILED,
    errors.BAD_INPUT,
    errors.BUILD_FAILED,
    errors.MACHINE_LACKS,
    errors.FAULT,
    errors.INTERRUPTED,
}

SAMPLES = {str: "sm_<89>", int: 3, float: 1.5, bool: True, type(None): None}


def sample(hint):
    """Some value of the type `hint`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return sample(args[0])
    if origin is tuple:
        inner = args[:1] * 2 if args[-1] is Ellipsis else args
        return tuple(sample(a) for a in inner)
    return SAMPLES[hint]


def instance(cls, only_required=False):
    hints = typing.get_type_hints(cls)
    return cls(
        **{
            name: sample(hints[name])
            for name in cls.fields()
            if not only_required or not hasattr(cls, name)
        }
    )


BOTH = [(cls, only) for cls in errors.every_error() for only in (False, True)]
"""Every class, with a value for each field and with those alone that it asks for."""


def by_name(case):
    return ", ".join(str(getattr(part, "__name__", part)) for part in case)


def survives_pickle(case):
    error = instance(*case)
    cls = case[0]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
        assert type(back) is cls, protocol
        assert [getattr(back, name) for name in cls.fields()] == [
            getattr(error, name) for name in cls.fields()
        ], protocol
        assert (str(back), back.hint) == (str(error), error.hint), protocol


def test_each_survives_pickle():
    check_every(BOTH, survives_pickle, by_name)


def survives_json(case):
    error = instance(*case)
    back = errors.error_from_plain(json.loads(json.dumps(errors.error_to_plain(error))))
    assert type(back) is case[0]
    assert (back.message, back.hint) == (error.message, error.hint)


def test_each_survives_json():
    check_every(BOTH, survives_json, by_name)


def writes_a_message(case):
    error = instance(*case)
    assert error.message.strip()
    assert str(error) == error.message
    assert isinstance(error.hint, str)


def test_each_writes_a_message():
    check_every(BOTH, writes_a_message, by_name)


def has_a_code_and_an_exit_status(cls):
    assert "code" in vars(cls)
    assert "exit_status" in vars(cls)
    assert cls.code.islower()
    assert set(cls.code) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert cls.exit_status in EXIT_STATUSES


def test_each_has_a_code_and_an_exit_status_of_its_own():
    check_every(errors.every_error(), has_a_code_and_an_exit_status)


def passes_through_a_context_manager(cls):
    @contextlib.contextmanager
    def passing():
        yield

    with pytest.raises(cls), passing():
        raise instance(cls)


def test_each_can_pass_through_a_context_manager():
    """A frozen dataclass could not: `contextlib` sets `__traceback__` on the error."""
    check_every(errors.every_error(), passes_through_a_context_manager)


def test_codes_are_unique():
    codes = [cls.code for cls in errors.every_error()]
    assert len(codes) == len(set(codes))
    assert errors.TrtplugError.code not in codes


def test_exit_statuses_are_those_of_the_design():
    assert (errors.DONE, errors.GATE_FAILED, errors.BAD_INPUT, errors.BUILD_FAILED) == (0, 1, 2, 3)
    assert (errors.MACHINE_LACKS, errors.FAULT, errors.INTERRUPTED) == (4, 70, 130)


def test_all_classes_are_in_one_module():
    assert {cls.__module__ for cls in errors.every_error()} == {"trtplug.errors"}


def test_templates_join_items_and_leave_out_what_is_empty():
    some = errors.UnknownTargetError(name="rtx49", nearest=("rtx4090", "rtx4080"))
    assert some.message == "unknown target 'rtx49'; did you mean rtx4090 or rtx4080?"
    assert errors.UnknownTargetError(name="x{name}[{", nearest=()).message == (
        "unknown target 'x{name}[{'"
    )
    given = errors.CacheMismatchError(path="c", wanted="w", differences=("a: 1, not 2", "b"))
    assert given.message == "c is not a timing cache for w:\n  a: 1, not 2\n  b"
    assert errors.ToolMissingError(tool="nvdisasm", package="p[x]").hint.startswith(
        "pip install p[x],"
    )
    assert "trtplug[kernels]" in errors.CompilerMissingError(problem="x").hint
    assert errors.BackendMissingError(backend="rtx", problem="x", advice="do y").hint == "do y"
    assert "doctor" in errors.BackendMissingError(backend="rtx", problem="x").hint


def test_wrong_fields_are_refused():
    with pytest.raises(TypeError, match="wants problem"):
        errors.ConfigError(file="x")
    with pytest.raises(TypeError, match="does not take"):
        errors.UsageError("a", "b", other="c")
    with pytest.raises(TypeError, match="does not take"):
        errors.UsageError("a", "b", "c")
