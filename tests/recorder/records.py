# SPDX-License-Identifier: Apache-2.0
"""Reads what the recorder (runtime.cc) has written, and checks the order of work."""
import collections
import re

Record = collections.namedtuple("Record", "what stream more")
Launch = collections.namedtuple("Launch", "stream name grid block shared")

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
    """Work that nobody has waited for. The default streams, and those made as blocking ones, wait for each other: legacy
    work for all earlier work of them, and theirs for earlier legacy work."""

    def __init__(self):
        self.pending = {}  # stream -> number of the work queued last
        self.blocking = set()

    def is_blocking(self, stream):
        return stream == "legacy" or stream.startswith("per thread") or stream in self.blocking

    def waits_for(self, stream, other):
        """Whether work in a stream waits for earlier work in another one."""
        if stream == other:
            return True
        return "legacy" in (stream, other) and self.is_blocking(stream) and self.is_blocking(other)

    def synchronize(self, stream):
        """Waits for a stream's last work, and for what this waited for."""
        if stream == "legacy":
            last = float("inf")
        elif stream in self.pending:
            last = self.pending[stream]
        else:
            return
        self.pending = {other: number for other, number in self.pending.items()
                        if not (self.waits_for(stream, other) and number <= last)}

    def queue(self, stream, number):
        """Returns the streams with work for which this work does not wait."""
        others = [other for other in self.pending if not self.waits_for(stream, other)]
        self.pending[stream] = number
        return others


def out_of_order(records):
    """Copies and launches that do not wait for work of another stream."""
    order, out = Order(), []
    for number, record in enumerate(records):
        if record.what == "stream" and record.more == ["blocking"]:
            order.blocking.add(record.stream)
        elif record.what == "synchronize all":
            order.pending.clear()
        elif record.what == "synchronize":
            order.synchronize(record.stream)
        elif record.what in ("launch", "to host", "to device", "fill", "within"):
            if others := order.queue(record.stream, number):
                out.append((number, record, others))
    return out
