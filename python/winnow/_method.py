# SPDX-License-Identifier: Apache-2.0
"""Methods that are written in Python."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence

from winnow import _core


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a method: a keyword argument of its class. It is an integer where its default is one."""

    default: int | float
    least: int | float
    most: int | float
    effect: str = ""

    def declared(self, name: str) -> tuple:
        """As winnow's registry declares it."""
        return (name, self.default, float(self.least), float(self.most), self.effect)


def method(name: str, **options: Option) -> Callable[[type], type]:
    """Registers a class under a name, for the whole process: it can then be used in every spec, wrapper and budget.

    The class has `score(layer)`, which returns one number for each entry, [KV heads, tokens]: the highest are kept. It may have `observe` (a
    number of last queries whose attention the layer has, or 'all'), `sinks` and `recent` (first and last entries that are always kept), and
    `signed = False` where no score is negative. It is made anew for each spec, with the spec's options as keyword arguments.

        @winnow.method("long-values", power=winnow.Option(2, 1, 8, "of the length"))
        class LongValues:
            def __init__(self, power):
                self.power = power

            def score(self, layer):
                return numpy.linalg.norm(layer.values, axis=2) ** self.power

    Raises UsageError when the name is taken, or not made of a to z, 0 to 9 and -.
    """

    def register(cls: type) -> type:
        summary = (inspect.getdoc(cls) or "a method in Python").splitlines()[0]
        declared: Sequence[tuple] = [option.declared(each) for each, option in options.items()]
        _core.add_method(name, summary, cls, declared)
        return cls

    return register
