# The two commands are `make up` and `make test`. Everything else is a convenience.
MUSTER := build/muster
export JOBS ?= $(shell nproc)
CONFIGURE := [ -f build/build.ninja ] || { echo "==> configuring"; cmake --preset release >/dev/null; }

.PHONY: up down build test sanitize test-unit test-e2e test-kubernetes test-crash soak bench demo profile reproducible release tidy format clean help packages-build packages-test kubernetes

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

up: build ## Install, build and start a cluster of three 4-GPU nodes in the background; IMAGE_SOURCE=containerd pulls images, IMAGES=FILE says which mean what
	@$(MUSTER) up --nodes 3 --gpus 4 $(if $(IMAGE_SOURCE),--image-source $(IMAGE_SOURCE)) $(if $(IMAGES),--images $(IMAGES)) --detach

down: ## End the cluster that `make up` started
	@$(MUSTER) down

build: packages-build ## Build build/muster
	@$(CONFIGURE)
	@echo "==> building build/muster"
	@tools/build muster

test: packages-test ## Install, build and run every test
	@$(CONFIGURE)
	@echo "==> building Muster and its tests"
	@tools/build all
	@tools/kubernetes
	@tools/openpai_sdk || echo "OpenPAI's client could not be fetched: it is not run"
	@echo "==> running the tests"
	@tools/test

test-unit: ## Only the quick tests
	@tools/test -L unit

test-e2e: ## Only the tests that drive a running cluster
	@tools/test -L e2e

sanitize: packages-test ## Build with ASan+UBSan, then with TSan, and run the tests with each (an hour or two on 2 cores)
	@tools/kubernetes
	@tools/sanitize dev
	@tools/sanitize tsan

soak: packages-test ## The whole cluster in virtual time under every fault, for HOURS of processor time (default 1; docs/reliability.md)
	@$(CONFIGURE)
	@tools/build bottle store_points
	@build/tests/bottle/store_points --points 10000 --seed $(or $(SEED),1)
	@build/tests/bottle/bottle --hours $(or $(HOURS),1) --jobs $(JOBS) --seed $(or $(SEED),1)

test-kubernetes: packages-test ## Only the tests of `muster run` on a real Kubernetes; ROUNDS=20 leaders are killed
	@$(CONFIGURE)
	@tools/build muster
	@tools/kubernetes
	@ROUNDS=$(or $(ROUNDS),20) tools/test -R '^kubernetes\.|^e2e.real_cluster$$'

test-crash: packages-test ## Only the tests that kill Muster with SIGKILL, with more rounds (ROUNDS=200)
	@$(CONFIGURE)
	@tools/build muster
	@tests/crash/apiserver_crash.py --rounds $(or $(ROUNDS),200)
	@tests/crash/framework_crash.py --rounds $(or $(ROUNDS),200)
	@tests/crash/pai_crash.py --rounds $(or $(ROUNDS),200)

kubernetes: ## Build the real Kubernetes that tests compare with
	@tools/kubernetes

reproducible: ## Build the commit twice, in different folders, and compare the bytes (an hour on 2 cores)
	@tools/reproducible

profile: build ## Count what a busy cluster runs most, for release builds (cmake/muster.profdata)
	@tools/profile

release: build ## A Debian package, a container image, a Helm chart and their checksums in dist/ (docs/install.md)
	@tools/release

demo: build ## A first minute: two jobs, one GPU, what happened and why; then the portal of a busy cluster
	@tools/demo.sh

bench: ## List the benchmarks
	@for run in bench/*/run; do printf '  %-22s %s\n' $$run "$$(sed -n '2{s/^# //;s/^"""//;p;q}' $$run)"; done

tidy: ## clang-tidy over what differs from the main branch, or over everything (ALL=1)
	@tools/tidy $(if $(ALL),--all)

format: ## Format the sources
	@tools/check_format --mend

clean: ## Remove the builds (caches stay)
	@rm -rf build build-*

packages-build:
	@tools/packages build

packages-test:
	@tools/packages test
