"""SIGTERM ends a command as Ctrl-C does; Ctrl-C may have to wait, and isn't lost."""

import os
import signal
import threading

import pytest
from runs import svmbench

from svmbench.base import interrupts
from svmbench.base.interrupts import handled, interrupts_wait, sigterm_as_interrupt


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(autouse=True)
def first_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_last_interrupt_s", -interrupts.SAME_SIGNAL_S)


def test_a_command_ends_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from svmbench.studies import listing

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setitem(listing.LISTS, "papers", terminate)
    ended = svmbench("list", "papers")
    assert (ended.code, ended.said.strip()) == (130, "interrupted")
    assert signal.getsignal(signal.SIGTERM) == before


def test_two_signals_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            terminate()
        terminate()  # while folders are removed, say
        monkeypatch.setattr(interrupts, "SAME_SIGNAL_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            terminate()


def test_another_thread_leaves_the_signal_alone() -> None:
    handlers = []

    def look() -> None:
        with sigterm_as_interrupt():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGTERM)]


def test_ctrl_c_waits_for_the_end_of_a_start() -> None:
    done = []

    def begin() -> None:
        with interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["the rest"]
    with interrupts_wait():
        pass


def test_ctrl_c_that_was_ignored_stays_so() -> None:
    with handled(signal.SIGINT, signal.SIG_IGN), interrupts_wait():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
