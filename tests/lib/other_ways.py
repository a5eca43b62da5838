"""Other ways to start muster: as an ordinary user, and where the kernel makes no user namespaces. Each is a program that MUSTER can name."""
import atexit
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from muster import binary


def folder(prefix):
    """Open to everybody, gone with this test."""
    path = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def without_user_namespaces(program=None):
    """Refuses to make them, as a kernel with user.max_user_namespaces=0, and becomes muster. x86-64."""
    program = program or binary()
    path = folder("muster-filter-") / "muster"
    path.write_text(
        f"""#!/usr/bin/python3
import ctypes, os, struct, sys
def op(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
# unshare (272) and clone (56) with CLONE_NEWUSER: ENOSPC.
program = b"".join([
    op(0x20, 0, 0, 0), op(0x15, 2, 0, 272), op(0x15, 1, 0, 56), op(0x06, 0, 0, 0x7fff0000),
    op(0x20, 0, 0, 16), op(0x45, 0, 1, 0x10000000), op(0x06, 0, 0, 0x50000 | 28), op(0x06, 0, 0, 0x7fff0000)])
text = ctypes.create_string_buffer(program)
class Program(ctypes.Structure): _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(22, 2, ctypes.byref(Program(len(program) // 8, ctypes.addressof(text)))) != 0:
    raise OSError(ctypes.get_errno(), "seccomp")
os.execv({str(program)!r}, [{str(program)!r}, *sys.argv[1:]])
"""
    )
    path.chmod(0o755)
    return path


class OrdinaryUser:
    """Somebody new on this machine, with a home and a copy of the program."""

    def __init__(self, name="muster-guest"):
        self.name = name
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True, capture_output=True)
        atexit.register(self.leave)
        entry = pwd.getpwnam(name)
        self.uid, self.gid, self.home = entry.pw_uid, entry.pw_gid, pathlib.Path(entry.pw_dir)
        self.home.chmod(0o711)
        self.program = self.home / "muster"
        shutil.copy(binary(), self.program)
        self.program.chmod(0o755)

    def leave(self):
        subprocess.run(["userdel", "--remove", self.name], check=False, capture_output=True)

    def become(self):
        """The words before a command that this person types."""
        return [
            "setpriv",
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--clear-groups",
            "--inh-caps=-all",
            "--no-new-privs",
        ]

    def run(self, *words, **env):
        """What this person sees; a login has no more than this in its environment."""
        usual = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "USER": self.name, **env}
        return subprocess.run(
            [*self.become(), *words], env=usual, cwd=self.home, text=True, capture_output=True, timeout=300
        )

    def muster(self, program=None, before="true"):
        """`muster up` is this person's, with the data folder that it names; everything else is the caller's. `before`
        is what root does first, in mounts that nobody else sees."""
        program = program or self.program
        path = folder("muster-as-user-") / "muster"
        path.write_text(
            f"""#!/bin/bash
if [ "$1" != up ]; then exec -a "$0" {program} "$@"; fi
for ((i = 1; i < $#; ++i)); do
  if [ "${{!i}}" = --data ]; then j=$((i + 1)); mkdir -p "${{!j}}"; chown -R {self.uid}:{self.gid} "${{!j}}"; chmod o+x "$(dirname "${{!j}}")"; fi
done
# Debian leaves it open to everybody; a machine without udev may not.
setup='exec "$@"'
if [ -e /dev/net/tun ] && [ "$(stat -c %a /dev/net/tun)" != 666 ]; then
  setup='mount -t tmpfs -o mode=755 tmpfs /dev/net; mknod -m 666 /dev/net/tun c 10 200; exec "$@"'
fi
exec unshare --mount --propagation private bash -c "{before}; $setup" muster {' '.join(self.become())} env HOME={self.home} USER={self.name} PATH=/usr/local/bin:/usr/bin:/bin {program} "$@"
"""
        )
        path.chmod(0o755)
        return path
