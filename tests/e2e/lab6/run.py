#!/usr/bin/env python3
"""The course on OpenPAI with HiveD from its installation to its last experiment, on one cluster, with the course's own
files (tests/data/lab6): parts 2 and 3 (L0), two virtual clusters (L1), safety (L2), priority (L3), opportunism (L4), one
virtual cluster (L5), gangs (L6), increments (L7).

    tests/e2e/lab6/run.py rest     # request by request
    tests/e2e/lab6/run.py sdk      # with OpenPAI's own JavaScript client
    tests/e2e/lab6/run.py --answers sdk  # also prints the answers to the course's questions, as docs/openpai.md has them

A watcher sees every change and checks what must always hold. The training program and `sleep` are stand-ins that take
seconds.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import configuration  # noqa: E402
import experiments  # noqa: E402
from drivers import DRIVERS  # noqa: E402
from lab import BOB, CAROLS, DANS, SLEEP_S, TRAINING_S, Lab, check  # noqa: E402
from muster import ROOT, Muster, kubectls  # noqa: E402
from pai import Api, course_folder, course_image, free_port  # noqa: E402
from watcher import Watcher  # noqa: E402


def course(lab, paictl):
    configuration.deployment(lab, paictl)
    configuration.first_jobs(lab)
    lab.settled()
    configuration.two_clusters(lab, paictl)
    for experiment in (experiments.safety, experiments.priority, experiments.opportunism):
        experiment(lab)
        lab.settled()
    configuration.one_cluster(lab, paictl)
    for experiment in (experiments.gang, experiments.increments, experiments.over_quota):
        experiment(lab)
        lab.settled()
    experiments.everything_is_listed(lab)


def table(answers):
    return [f"| {question} | {answer} |" for question, answer in answers.items()]


def documented(answers):
    text = (ROOT / "docs" / "openpai.md").read_text()
    for line in table(answers):
        check(f"docs/openpai.md answers: {line.split('|')[1].strip()}", line in text, line)


def run(driver_name, folder):
    port = free_port()
    layout = folder / "deploy"
    layout.mkdir()
    images = course_image(folder, TRAINING_S, SLEEP_S)
    arguments = ["--pai-layout", str(configuration.layout(layout)), "--images", str(images)]
    muster = Muster(*arguments, "--pai-rest", f"127.0.0.1:{port}")
    for flag in ("--nodes", "--gpus"):  # the files say it
        del muster.args[muster.args.index(flag) : muster.args.index(flag) + 2]
    with muster:
        driver = DRIVERS[driver_name](port)
        driver.login(BOB, "admin-password")
        raw = Api(port).login("admin", "admin-password")
        watcher = Watcher(muster, kubectls()[0][1], raw)
        watcher.homes = {"default": {CAROLS, DANS}}
        watcher.start()
        lab = Lab(muster, driver, watcher, raw)
        course(lab, configuration.Paictl(muster, configuration.dev_box(folder)))
        watcher.close(check)
        driver.close()
    return lab.answers


def main():
    words = [word for word in sys.argv[1:] if word != "--answers"]
    if len(words) != 1 or words[0] not in DRIVERS:
        sys.exit(__doc__)
    answers = run(words[0], course_folder())
    if "--answers" in sys.argv:
        print("\n".join(table(answers)))
    documented(answers)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
