# Two commands matter: `make serve` shows the site, `make test` runs everything.
# Both set up .venv by themselves and do it again only when the settings change.

PYTHON ?= python3
ADDR ?= 127.0.0.1:8000
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SETTINGS := pyproject.toml constraints.txt
EDITOR := docs/assets/vendor/codemirror
export NO_MKDOCS_2_WARNING := 1

.PHONY: serve site test lint types unit pages shuffled mutants figures editor bench gpu-test \
  new-page new-exercise release-check clean

serve: .venv/docs
	$(BIN)/mkdocs serve --dev-addr $(ADDR)

site: .venv/docs
	$(BIN)/mkdocs build --strict
	$(BIN)/python -m livepages.runtime site

test: lint types unit pages site

lint: .venv/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell

types: .venv/test
	$(BIN)/mypy

unit: .venv/test
	$(BIN)/pytest --numprocesses 2 tests src

pages: .venv/test
	$(BIN)/pytest --numprocesses 2 docs

# wrong variants of gradstep and of pages: the tests of the pages must fail for each of them
mutants: .venv/test
	$(BIN)/python -m tests.mutants

# in an order of chance: no page needs another one before it
shuffled: .venv/test
	$(BIN)/pytest --numprocesses 2 $$(find docs -name '*.md' | sort --random-sort)

# the drawings are committed: a test draws them again and compares
figures: .venv/test
	$(BIN)/python -m snippets.figures

# the editor is committed, too: only who changes it needs npm
editor:
	mkdir -p .venv/editor
	cp $(addprefix $(EDITOR)/,package.json package-lock.json build.js entry.js) .venv/editor
	npm --prefix .venv/editor ci --ignore-scripts
	npm --prefix .venv/editor run build
	cp .venv/editor/editor.bundle.js .venv/editor/LICENSES $(EDITOR)

bench: .venv/bench
	$(BIN)/python -m tests.benchmarks

gpu-test: .venv/test
	$(BIN)/pytest docs tests --require-cuda --record .venv/record.json
	$(BIN)/python -m livepages.record .venv/record.json

# make new-page NAME=lesson/my-page, make new-exercise NAME=my-exercise
new-page new-exercise: .venv/test
	$(BIN)/python -m livepages.new $(@:new-%=%) "$(NAME)"

# the package, built and tried where nothing else is; for a release with TAG=v1.2.3
release-check: .venv/test
	$(BIN)/python -m tests.release $(TAG)

clean:
	rm -rf .venv site dist

.venv/pip: constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) pip
	touch $@

# the site alone: the docs extra without the package, so without torch
.venv/docs: .venv/pip $(SETTINGS)
	$(BIN)/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["docs"], sep="\n")' > .venv/docs.txt
	$(PIP) --requirement .venv/docs.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/test: .venv/docs $(SETTINGS)
	$(PIP) --editable '.[test]'
	touch $@

# with the frameworks that are measured beside ours
.venv/bench: .venv/test $(SETTINGS)
	$(PIP) --editable '.[bench]'
	touch $@
