"""Every error class: survives pickle, has a code of its own and an exit status of the table."""

import json
import pickle
import types
import typing

import pytest

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


every_error = pytest.mark.parametrize("cls", errors.every_error(), ids=lambda c: c.__name__)


@every_error
@pytest.mark.parametrize("only_required", [False, True])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_survives_pickle(cls, only_required, protocol):
    error = instance(cls, only_required)
    back = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
    assert type(back) is cls
    assert [getattr(back, name) for name in cls.fields()] == [
        getattr(error, name) for name in cls.fields()
    ]
    assert (str(back), back.hint) == (str(error), error.hint)


@every_error
@pytest.mark.parametrize("only_required", [False, True])
def test_survives_json(cls, only_required):
    error = instance(cls, only_required)
    back = errors.error_from_plain(json.loads(json.dumps(errors.error_to_plain(error))))
    assert type(back) is cls
    assert (back.message, back.hint) == (error.message, error.hint)


@every_error
@pytest.mark.parametrize("only_required", [False, True])
def test_writes_a_message(cls, only_required):
    error = instance(cls, only_required)
    assert error.message.strip()
    assert str(error) == error.message
    assert isinstance(error.hint, str)


@every_error
def test_has_a_code_and_an_exit_status_of_its_own(cls):
    assert "code" in vars(cls)
    assert "exit_status" in vars(cls)
    assert cls.code.islower()
    assert set(cls.code) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert cls.exit_status in EXIT_STATUSES


@every_error
def test_can_pass_through_a_context_manager(cls):
    """A frozen dataclass could not: `contextlib` sets `__traceback__` on the error."""
    import contextlib

    @contextlib.contextmanager
    def passing():
        yield

    with pytest.raises(cls), passing():
        raise instance(cls)


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
