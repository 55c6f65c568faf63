"""Counts what the cases of bad inputs did that none may do."""

import collections

from tests.bad_inputs import matrix

import pytest


def pytest_collection_modifyitems(items):
    """Leaves the cases of the tables to `make bad-inputs` and CI."""
    quick = ("test_cases.py", "test_flags.py")
    for item in items:
        if "bad_inputs" in item.path.parts and item.path.name not in quick:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Notes what a case did."""
    report = yield
    if call.excinfo and isinstance(call.excinfo.value, matrix.FaultError):
        report.user_properties.append(("fault", call.excinfo.value.fault))
    return report


def pytest_terminal_summary(terminalreporter):
    """Says how many cases there were, and what they did."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if "bad_inputs/test_" in report.nodeid
        and "/test_cases.py" not in report.nodeid
        and report.when == "call"
    ]
    faults = collections.Counter(
        value
        for report in reports
        for name, value in report.user_properties
        if name == "fault"
    )
    if reports:
        count = sum(dict(x.user_properties).get("cases", 1) for x in reports)
        terminalreporter.write_line(f"{count} bad inputs")
        for fault in matrix.FAULTS:
            terminalreporter.write_line(f"  {fault}: {faults[fault]}")
