# SPDX-License-Identifier: Apache-2.0
"""Reads what the recorder (runtime.cc) has written, and checks the order of work."""
import collections
import re

Record = collections.namedtuple("Record", "what stream more")
Launch = collections.namedtuple("Launch", "stream name grid block shared")

LEGACY, PER_THREAD = {"(nil)", "0x1"}, "0x2"  # the default streams, which wait for each other


def read(path):
    records = []
    for line in path.read_text().splitlines():
        what, stream, *more = line.split("\t")
        records.append(Record(what, stream, more))
    return records


def launches(records):
    def numbers(text):
        return [int(number) for number in text.split(",")]

    return [Launch(r.stream, r.more[0], numbers(r.more[1]), numbers(r.more[2]), int(r.more[3]))
            for r in records if r.what == "launch"]


def is_winnows(name):
    return re.match(r"_ZN6winnow", name) is not None


def beyond_limits(records):
    """Launches that a GPU would refuse, and those with more shared memory than their kernel was given."""
    given, out = {}, []
    for record in records:
        if record.what == "shared memory":
            given[record.more[0]] = int(record.more[1])
        if record.what != "launch":
            continue
        launch, = launches([record])
        x, y, z = launch.grid
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        fits = 0 < x < 2**31 and 0 < y < 2**16 and 0 < z < 2**16 and 0 < threads <= 1024
        if not fits or launch.shared > max(49152, given.get(launch.name, 0)) or launch.shared > 232448:
            out.append(launch)
    return out


class Order:
    """Streams with work that nobody has waited for."""

    def __init__(self):
        self.pending = {}  # stream -> the work queued last
        self.blocking = set()

    def default(self, stream):
        return stream in LEGACY or stream == PER_THREAD or stream in self.blocking

    def wait_for(self, stream):
        self.pending.pop(stream, None)
        if self.default(stream):  # the default streams wait for each other
            for other in [s for s in self.pending if self.default(s)]:
                del self.pending[other]

    def may_follow(self, stream):
        """Work in other streams for which work in this stream does not wait."""
        return {other: work for other, work in self.pending.items()
                if other != stream and not (self.default(other) and self.default(stream))}


def out_of_order(records):
    """Copies and launches that do not wait for work of another stream."""
    order, out = Order(), []
    for number, record in enumerate(records):
        if record.what == "stream" and record.more == ["blocking"]:
            order.blocking.add(record.stream)
        elif record.what == "synchronize all":
            order.pending.clear()
        elif record.what == "synchronize":
            order.wait_for(record.stream)
        elif record.what in ("launch", "to host", "to device", "fill", "within"):
            others = order.may_follow(record.stream)
            if others:
                out.append((number, record, others))
            order.pending[record.stream] = record
    return out
