"""Plays a document: every command of its console blocks is typed into one shell, and what it prints is compared with what
the document says it prints.

- A comment `<!-- typed first: COMMAND -->` is what a reader of the page has done before.
- A block below `<!-- not run: REASON -->` is skipped.
- A yaml block below a line that ends with "`NAME`:" becomes the file NAME in the folder where the shell is.
- Commands that only read are repeated until they print what the document says: the cluster takes its time.
- A command that ends with -w watches in the background; at the end of its chapter each object must have gone through
  the states of the document in their order.
- Durations, times of day, generated suffixes and column widths are not compared. A line "…" stands for any lines.

`fill` writes a document instead: it puts the output below each command.
"""
import contextlib
import os
import re
import subprocess
import threading
import time

from walkthrough import rows

LOOKS = re.compile(
    r"(arena|muster)(?: --config \S+)? (get|top|logs|list|explain|history|when|queue (list|get))\b|kubectl (get|logs|describe|wait|exec)\b"
)
NAMES = [
    (r"\bjob-[a-z0-9]{5}\b", "job-<suffix>"),
    (r"process \d+", "process <number>"),
    # Newer kubectls say where.
    (r" deleted from \S+ namespace$", " deleted"),
    (r"\(\d+ nodes, [0-9.]+ s\)", "(<time>)"),
    # A short state may be over before somebody looks.
    (r"INFO\[\d+\] The Job \S+ is (PENDING|QUEUING|RUNNING)$", ""),
    (r"\b(INFO|ERRO|WARN)\[\d+\]", r"\1[<number>]"),
    # Which nodes are taken depends on what has just ended.
    (r"\bon node-\d(, node-\d)*", "on <nodes>"),
    (r'"Id":"[0-9a-f]{32}"', '"Id":"<id>"'),
    (r'"resourceVersion": "\d+"', '"resourceVersion": "<number>"'),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?", "<date>"),
    (r"(?<![\d.:])\d\d:\d\d(:\d\d)?(?![\d:])", "<clock>"),
]
MARK = "=== done"


def chapters(text):
    """[(title, [("file", name, content) or ("command", command, output)])] of a document."""
    found, name, left_out = [("", [])], "", False
    blocks = re.split(r"^```", text, flags=re.M)
    for number, block in enumerate(blocks):
        if number % 2 == 0:
            parts = re.split(r"^## (.*)$", block, flags=re.M)
            for title in parts[1::2]:
                found.append((title, []))
            last = parts[-1].rstrip().splitlines()[-1:] or [""]
            match = re.search(r"`([\w./~-]+)`:$", last[0])
            name = match.group(1) if match else ""
            left_out = last[0].startswith("<!-- not run: ")
            continue
        kind, _, body = block.partition("\n")
        if kind == "yaml" and name:
            found[-1][1].append(("file", name, body))
        elif kind == "console" and not left_out:
            found[-1][1].extend(("command", *step) for step in typed(body))
    return [one for one in found if one[1]]


def typed(body):
    """The (command, output) of a console block; a command goes on after a backslash."""
    steps, more = [], False
    for line in body.splitlines():
        if more:
            steps[-1][0] += "\n" + line
        elif line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
        more = (more or line.startswith("$ ")) and line.endswith("\\")
    return [(command, "\n".join(output).strip("\n")) for command, output in steps]


def fill(text, shell, rewrite=lambda command: command, settle=2):
    """The document with what its commands print now. Where it cuts with "…" it stays as it is. Commands that only look are
    given time: what they print counts once it stays the same for `settle` seconds."""

    def print_now(body):
        out = []
        for command, wanted in typed(body):
            status, got = shell.run(rewrite(command), 40)
            calm = begun = time.monotonic()
            while LOOKS.search(command) and time.monotonic() < min(calm + settle, begun + 10 * settle):
                time.sleep(0.3)
                before, (status, got) = got, shell.run(rewrite(command))
                calm = calm if rows(before, NAMES) == rows(got, NAMES) else time.monotonic()
            print(f"{time.monotonic() - begun:.1f} s  {command}", flush=True)
            if status != 0:
                print(f"exit status {status}: {command}\n{got}", flush=True)
            got = "\n".join(line.rstrip() for line in got.splitlines())
            out += ["$ " + command, *([wanted] if "…" in wanted.splitlines() else [got] if got else [])]
        return "\n".join(out) + "\n"

    prepare(text, shell, rewrite)
    blocks = re.split(r"^```", text, flags=re.M)
    for number in range(1, len(blocks), 2):
        kind, _, body = blocks[number].partition("\n")
        name = re.search(r"`([\w./~-]+)`:\s*$", blocks[number - 1])
        if kind == "yaml" and name:
            shell.run(f"cat > {name[1]} <<'END_OF_FILE'\n{body}END_OF_FILE")
        elif kind == "console" and not re.search(r"<!-- not run: .* -->\s*$", blocks[number - 1]):
            blocks[number] = "console\n" + print_now(body)
    return "```".join(blocks)


def prepare(text, shell, rewrite):
    """What the page takes for granted."""
    for command in re.findall(r"<!-- typed first: (.+?) -->", text, re.S):
        status, got = shell.run(rewrite(command))
        if status != 0:
            raise RuntimeError(f"{command} exited with {status}:\n{got}")


def same(wanted, got, sort=False):
    left, right = rows(wanted, NAMES), rows(got, NAMES)
    if sort:
        left, right = sorted(left), sorted(right)
    if ["…"] not in left:
        return left == right
    at = left.index(["…"])
    tail = left[at + 1 :]
    return right[:at] == left[:at] and len(right) >= len(left) - 1 and right[len(right) - len(tail) :] == tail


class Shell:
    """One bash that everything is typed into."""

    def __init__(self, environment, folder, enter=()):
        self.lines, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(
            [*enter, "bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=folder,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.lines.append(f"{MARK} 255\n")
            self.changed.notify_all()

    def run(self, command, timeout=300):
        """(exit status, output)"""
        with self.changed:
            self.lines.clear()
        self.process.stdin.write(f"{{ {command}\n}} </dev/null 2>&1; status=$?; echo; echo '{MARK}' $status\n")
        self.process.stdin.flush()
        with self.changed:
            ended = self.changed.wait_for(lambda: any(line.startswith(MARK) for line in self.lines), timeout)
            text = "".join(self.lines)
        if not ended:
            return 124, text + f"\nno end after {timeout} s"
        out, _, status = text.rpartition(MARK)
        return int(status), out.strip("\n")

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(60)


class Watch:
    """A command that goes on while others are typed."""

    def __init__(self, shell, command, wanted):
        self.shell, self.command, self.wanted = shell, command, wanted
        self.file = f"$HOME/watch-{id(self)}"
        # kubectl tells its requests when they are answered; what is made after the watch's answer is in the watch.
        shell.run(f"{{ {command} -v=6 > {self.file} 2> {self.file}-asked & }}; watch{id(self)}=$!")
        shell.run(f"timeout 60 sh -c 'until grep -q watch=true {self.file}-asked; do sleep 0.05; done'")

    def states(self, text):
        """The distinct states of each object, objects in the order in which they came."""
        found = {}
        for row in (line.split() for line in text.splitlines()):
            if len(row) > 1 and not row[0].isupper():
                states = found.setdefault(row[0], [])
                state = next((cell for cell in row[1:] if cell[:1].isupper()), "")
                if state and state not in states:
                    states.append(state)
        return list(found.values())

    def finish(self, check):
        """Its last lines may be on their way still."""
        wanted, deadline = self.states(self.wanted), time.monotonic() + 60
        while True:
            _, text = self.shell.run(f"cat {self.file}")
            if self.states(text) == wanted or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        self.shell.run(f"kill $watch{id(self)}; wait $watch{id(self)}")
        check(self.command, self.states(text) == wanted, f"--- wanted\n{self.wanted}\n--- printed\n{text}")


def play(text, shell, check, rewrite=lambda command: command, only=None, patience=120):
    """Types the whole document. `rewrite`: how this machine differs from the reader's."""
    prepare(text, shell, rewrite)
    for title, steps in chapters(text):
        if only and not only(title):
            continue
        watches = []
        for kind, first, second in steps:
            if kind == "file":
                status, out = shell.run(f"cat > {first} <<'END_OF_FILE'\n{second}END_OF_FILE")
                check(f"{title}: {first}", status == 0, out)
            elif first.endswith(" -w"):
                watches.append(Watch(shell, first, second))
            else:
                good = replay(f"{title}: {first.splitlines()[0]}", rewrite(first), second, shell, check, patience)
                if first.startswith("make up") and not good:
                    return
        for watch in watches:
            watch.finish(check)


def replay(what, command, wanted, shell, check, patience):
    deadline = time.monotonic() + (patience if LOOKS.search(command) else 0)
    while True:
        status, got = shell.run(command)
        # Jobs of one second stand in the order of their names.
        table = "muster list" in command or command.endswith("muster history")
        good = status == 0 and same(wanted, got, sort=table and "…" not in wanted)
        if good or time.monotonic() >= deadline:
            break
        time.sleep(0.3)
    if os.environ.get("SHOW"):
        print(f"$ {command}\n{got}", flush=True)
    return check(what, good, f"exit status {status}\n--- wanted\n{wanted}\n--- printed\n{got}")
