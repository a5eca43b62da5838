"""Counting what held, and waiting for what must come true: what tests that are programs share."""
import time


class Checks:
    """Counts what held, says what did not, and closes as every test here does."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, what, condition, detail=""):
        self.passed, self.failed = self.passed + bool(condition), self.failed + (not condition)
        print(
            ("ok    " if condition else "FAIL  ")
            + what
            + ("" if condition else f": {detail() if callable(detail) else detail}"),
            flush=True,
        )
        return condition

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


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
