"""Name the tests that take long and are not marked as slow.

CPU time is measured, as it depends less than wall time on other work: that of the test's process
and of the processes that ended during the test and that it waited for.
"""

from __future__ import annotations

import resource

import pytest

#: CPU seconds above which a test is to be marked as slow.
SLOW_CPU_S = 1.0
#: Other programs and coverage lengthen a test: above this multiple it is named.
TOLERANCE = 3.0
_BEGAN = pytest.StashKey[float]()


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep the CPU time at which a test begins."""
    item.stash[_BEGAN] = _cpu_s()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add its CPU time to the last report of a test."""
    if call.when == "teardown":
        item.user_properties.append(("cpu_s", _cpu_s() - item.stash[_BEGAN]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests above the limit that are not marked as slow."""
    limit = TOLERANCE * SLOW_CPU_S
    long = {
        one.nodeid: seconds
        for reports in terminalreporter.stats.values()
        for one in reports
        if getattr(one, "when", None) == "teardown" and "slow" not in one.keywords
        if (seconds := dict(one.user_properties)["cpu_s"]) > limit
    }
    if long:
        terminalreporter.section(f"not marked as slow, and more than {limit:g} CPU seconds")
        for name in sorted(long, key=lambda one: -long[one]):
            terminalreporter.line(f"{long[name]:.1f} s {name}")
