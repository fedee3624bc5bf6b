# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence

from winnow import _core


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a method, a keyword argument of its class. It is an integer if its default is one."""

    default: int | float
    least: int | float
    most: int | float
    effect: str = ""

    def declared(self, name: str) -> tuple:
        """The declaration for winnow's registry."""
        return (name, self.default, float(self.least), float(self.most), self.effect)


class _Registered:
    """Creates methods for specs of a name, from the class registered last under it."""

    def __init__(self, cls: type, declared: Sequence[tuple]) -> None:
        self.cls = cls
        self.declared = declared

    def __call__(self, **options: int | float) -> object:
        return self.cls(**options)

    def is_redefined_by(self, cls: type, declared: Sequence[tuple]) -> bool:
        """True if it is the same definition, run again."""
        return (self.cls.__module__, self.cls.__qualname__, self.declared) == (
            cls.__module__,
            cls.__qualname__,
            declared,
        )


_registered: dict[str, _Registered] = {}


def method(name: str, **options: Option) -> Callable[[type], type]:
    """Registers a class as a method, for the whole process. Its name can then be used in specs, also in wrappers.

    The class has `score(layer)`, which returns one number for each entry, [KV heads, tokens]; the highest are kept. It
    may have these attributes:
    - `observe`: number of last queries whose attention the layer has, or 'all'
    - `observers`: names of observers, whose results are in `layer.seen(name)`
    - `sinks` and `recent`: numbers of first and last entries that are always kept
    - `signed = False`, if no score is negative
    An object is created for each spec, with the spec's options as keyword arguments.

        @winnow.method("long-values", power=winnow.Option(2, 1, 8, "of the length"))
        class LongValues:
            def __init__(self, power):
                self.power = power

            def score(self, layer):
                return numpy.linalg.norm(layer.values, axis=2) ** self.power

    A class that is defined again with the same options replaces the former one, as when a notebook's cell runs again.
    Raises UsageError if the name is taken, or has characters other than a to z, 0 to 9 and -.
    """

    def register(cls: type) -> type:
        if not callable(getattr(cls, "score", None)):
            raise _core.UsageError(f"{cls!r} has no score(layer)")
        # reports all mistakes here, once
        _core.check_method(name, cls(**{each: option.default for each, option in options.items()}))
        declared: Sequence[tuple] = [option.declared(each) for each, option in options.items()]
        if name in _registered and _registered[name].is_redefined_by(cls, declared):
            _registered[name].cls = cls
            return cls
        registered = _Registered(cls, declared)
        summary = (inspect.getdoc(cls) or "a method in Python").splitlines()[0]
        _core.add_method(name, summary, registered, declared)
        _registered[name] = registered
        return cls

    return register
