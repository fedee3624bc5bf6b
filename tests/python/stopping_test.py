# SPDX-License-Identifier: Apache-2.0
"""Long calls let other threads run, and can be stopped."""

import signal
import threading
import time

import pytest

import winnow


@pytest.fixture
def reading(session):
    """A call of some tenths of a second."""
    tokens = session.model.tokenize("word0 word1 word2 " * 300)
    return lambda: session.read_tokens(tokens)


def test_calls_do_not_hold_the_gil(reading):
    ticks, done = [], threading.Event()

    def count():
        while not done.wait(0.001):
            ticks.append(time.monotonic())

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.monotonic()
    reading()
    end = time.monotonic()
    done.set()
    counter.join()
    assert sum(begin < tick < end for tick in ticks) >= 3


def forever(call):
    while True:
        call()


def test_ctrl_c_stops_a_call_and_leaves_the_session(session, text, reading):
    [before] = session.read(text)
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        forever(reading)
    assert [head.tolist() for head in before.kept()[0]] == [head.tolist() for head in session.read(text)[0].kept()[0]]


def test_another_thread_stops_a_call(session, text, reading):
    threading.Timer(0.1, session.stop).start()
    with pytest.raises(winnow.Interrupted):
        forever(reading)
    assert session.read(text)
