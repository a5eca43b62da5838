"""The harness of every test written in Python: it counts what passed and says what failed.

    check = Checks()
    check("the pod runs", phase == "Running", seen)
    check.skip("fish completes names", "fish is not installed")
    check.case(a_function_that_raises_when_something_is_wrong, cluster)
    sys.exit(check.close())

The last line is `N passed, N failed, N skipped`; tools/test adds these up over all suites. What cannot be tried on
this machine is counted as skipped, with the reason, never left out silently.
"""
import sys
import time
import traceback


class Skipped(Exception):
    """Raised inside a case that cannot be tried here; its text says why."""


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def __call__(self, what, condition, detail=""):
        """One check. `detail` is what was seen instead, or a function that gives it."""
        self.count(condition)
        said = "" if condition else f": {detail() if callable(detail) else detail}"
        print(("ok    " if condition else "FAIL  ") + what + said, flush=True)
        return condition

    def count(self, condition):
        """A check that is reported elsewhere, in a table for instance."""
        self.passed, self.failed = self.passed + bool(condition), self.failed + (not condition)

    def skip(self, what, why):
        self.skipped += 1
        print(f"SKIPPED {what}: {why}", flush=True)

    def case(self, function, *arguments):
        """A function as one check: it fails by raising. False if it did."""
        begun = time.monotonic()
        try:
            function(*arguments)
        except Skipped as why:
            self.skip(function.__name__, why)
        except Exception:  # noqa: BLE001 - whatever went wrong is this case's result
            return self(function.__name__, False, "\n" + traceback.format_exc())
        else:
            self(f"{function.__name__} ({time.monotonic() - begun:.1f} s)", True)
        return True

    def close(self):
        """Prints the closing line; the exit status."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def skip_all(why):
    """Ends a program none of whose checks can be tried here."""
    print(f"SKIPPED: {why}\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def until(condition, timeout=120, every=0.05):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            if condition():
                return True
        except (RuntimeError, OSError):  # the server is away; some tests see to that
            pass
        time.sleep(every)
    return False
