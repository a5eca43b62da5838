"""Which test types the commands of which page. tools/check_docs requires every page with commands to be listed here, or a comment
in the page that says why no test can type them."""
import re

PAGES_TEST = "tests/e2e/docs_pages.py"
PLAYED = {
    "README.md": PAGES_TEST,
    "README.zh.md": PAGES_TEST,
    "docs/answers.md": "tests/e2e/answers_docs.py",
    "docs/cli.md": PAGES_TEST,
    "docs/install.md": "tests/kubernetes/helm.py",
    "docs/kubernetes.md": "tests/kubernetes/deploy.py",
    "docs/migrate.md": "tests/kubernetes/migrate.py",
    "docs/operate.md": "tests/e2e/operate.py",
    "docs/seeds.md": "tests/lib/seeds.py",
    "docs/simulate.md": PAGES_TEST,
    "docs/troubleshooting.md": PAGES_TEST,
    "docs/tutorials/first-job.md": PAGES_TEST,
    "docs/tutorials/first-job.zh.md": PAGES_TEST,
    "docs/tutorials/queues.md": PAGES_TEST,
    "docs/tutorials/queues.zh.md": PAGES_TEST,
}
# Indented commands, which have no output to compare, are run by this test, if they match; others have a test of their own.
INDENTED = {
    "docs/answers.md": "tests/kubernetes/deploy.py",
    "docs/kubernetes.md": "tests/kubernetes/deploy.py",
}
INDENTED_COMMAND = re.compile(r"^ {4,}((?:kubectl|deploy/)\S* .*)$", re.M)
INDENTED_ELSEWHERE = {"helm install muster deploy/helm/muster": "tests/kubernetes/helm.py"}
# Pages whose console blocks are those of another page, byte for byte.
TRANSLATED = {
    "README.zh.md": "README.md",
    "docs/tutorials/first-job.zh.md": "docs/tutorials/first-job.md",
    "docs/tutorials/queues.zh.md": "docs/tutorials/queues.md",
}
