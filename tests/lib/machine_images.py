"""Large images made of this machine's installed Debian packages, without a network: a package with everything it depends
on becomes one layer, as `apt-get install` in a Dockerfile would make it.

    pusher.push(name, [packages("openmpi-bin", "openssh-server"), {"etc/greeting": "hello\\n"}])
"""
import os
import pathlib
import re
import subprocess
import tempfile

# What every Debian system has without being asked for.
BASE = ("base-files", "bash", "coreutils", "dash", "findutils", "grep", "hostname", "libc-bin", "procps", "sed")
LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|locale|info|lintian|bug|icons|perl|zoneinfo|i18n)/|/usr/include/|\.a$|/test/"
)
ALTERNATIVES = pathlib.Path("/var/lib/dpkg/alternatives")


def installed():
    """{package: the names it depends on}, and who provides a name."""
    text = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    needs, providers = {}, {}
    for line in text.splitlines():
        package, status, depends, provides = line.split("\t")
        if status != "installed":
            continue
        needs[package] = [[name_of(one) for one in some.split("|")] for some in depends.split(",") if some.strip()]
        for one in provides.split(","):
            providers.setdefault(name_of(one), package)
    return needs, providers


def name_of(relation):
    """ "libc6:any (>= 2.36)" -> "libc6"."""
    return re.split(r"[ :(]", relation.strip(), maxsplit=1)[0]


def closure(wanted, without=()):
    """The packages and all they depend on, as far as they are installed."""
    needs, providers = installed()
    found, todo = set(), [*BASE, *wanted]
    while todo:
        package = todo.pop()
        package = package if package in needs else providers.get(package)
        if not package or package in found or package in without:
            continue
        found.add(package)
        for alternatives in needs[package]:
            there = [one for one in alternatives if one in needs or one in providers]
            todo += there[:1]
    return sorted(found)


def linked_by_alternatives(files):
    """The links of Debian's alternatives that lead to one of the files: no package owns them."""
    links = set()
    for record in ALTERNATIVES.iterdir():
        lines = record.read_text().split("\n\n")[0].splitlines()[1:]
        # The link of the name itself, then a name and a link for each that follows it.
        for link in [lines[0], *lines[2::2]]:
            if os.path.islink(link) and os.path.realpath(link) in files:
                links |= {link, os.readlink(link)}
    return links


def on_disk(path):
    """Where the file lies when the links among its folders are followed: /bin/sh is /usr/bin/sh."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def packages(*wanted, without=()):
    """The layer of these packages, as a tar in a temporary file."""
    listed = subprocess.run(
        ["dpkg-query", "-L", *closure(wanted, without)], check=True, capture_output=True, text=True
    ).stdout
    files = {on_disk(path) for path in listed.splitlines() if path.startswith("/") and path != "/."}
    files = {path for path in files if os.path.lexists(path) and not LEFT_OUT.search(path + "/" * os.path.isdir(path))}
    files |= {on_disk(link) for link in linked_by_alternatives(files)}
    files |= {path for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32") if os.path.islink(path)}
    files |= {str(parent) for path in files for parent in pathlib.Path(path).parents if str(parent) != "/"}
    tar = tempfile.NamedTemporaryFile(prefix="muster-layer-", suffix=".tar")
    names = "\0".join(path.lstrip("/") for path in sorted(files) if path.startswith("/"))
    subprocess.run(
        ["tar", "-cf", tar.name, "-C", "/", "--no-recursion", "--owner=0", "--group=0", "--mtime=@0"]
        + ["--exclude=proc/*", "--exclude=sys/*", "--exclude=run/*", "--exclude=tmp/*", "--null", "-T", "-"],
        input=names.encode(),
        check=True,
        capture_output=True,
    )
    return tar


def accounts():
    """The accounts of a Debian system with sshd."""
    return {
        "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n",
        "etc/group": "root:x:0:\nnogroup:x:65534:\n",
        "etc/shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
        "root/": None,
        "tmp/": None,
    }


def sshd():
    """What the scripts of openssh-server and PAM make: settings, host keys of the image's own, the folder of unprivileged
    sshd."""
    files = {
        "run/sshd/": None,
        "var/run": ("link", "/run"),
        "etc/ssh/sshd_config": pathlib.Path("/usr/share/openssh/sshd_config").read_bytes(),
    }
    for rules in pathlib.Path("/etc/pam.d").glob("common-*"):
        files[str(rules).lstrip("/")] = rules.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("ed25519", "ecdsa"):
            key = pathlib.Path(folder) / f"ssh_host_{kind}_key"
            subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "image", "-f", str(key)], check=True)
            files[f"etc/ssh/{key.name}"] = (0o600, key.read_bytes())
            files[f"etc/ssh/{key.name}.pub"] = key.with_suffix(".pub").read_bytes()
    return files
