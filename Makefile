# Two commands are enough: `make run` and `make test`. Each installs what is missing first and is quick from then on.

PYTHON ?= python3
BIN := .venv/bin
PYTEST := QT_QPA_PLATFORM=offscreen $(BIN)/pytest
# What the program is asked on its command line, such as ARGS="chat --prompt Hello".
ARGS ?=

.PHONY: run torch test test-full check types lint architecture screenshots bench translations package-linux \
    package-test clean prepare-run prepare-test

run: prepare-run
	$(BIN)/python -m app $(ARGS)

# The second engine beside llama.cpp: some hundred megabytes without a GPU, gigabytes with one.
torch: prepare-run
	@$(PYTHON) packaging/bootstrap.py torch

test: prepare-test
	$(PYTEST) -m "not full"

# The large counts too: an hour or so.
test-full: prepare-test
	CUTAWAY_FULL=1 $(PYTEST)

# `make -k check` goes on after the first that fails.
check: types lint architecture

types: prepare-test
	$(BIN)/mypy

lint: prepare-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

architecture: prepare-test
	$(PYTEST) tests/architecture

screenshots: prepare-test
	$(BIN)/python tests/helpers/screenshots.py

bench: prepare-test
	$(BIN)/python tests/benchmarks/run.py

# Collects the strings and compiles every catalogue; needs Debian's gettext.
translations:
	find app ui -name '*.py' | sort | xgettext --files-from=- --language=Python --from-code=UTF-8 \
	    --keyword=_ --keyword=ngettext:1,2 --output=resources/translations/cutaway.pot
	for words in $(wildcard resources/translations/*/LC_MESSAGES/cutaway.po); do \
	    msgmerge --quiet --update --backup=none "$$words" resources/translations/cutaway.pot && \
	    msgfmt --check --output-file="$${words%.po}.mo" "$$words" || exit 1; \
	done

# A .deb and a .run in dist/. The first time it builds llama.cpp for every processor: a quarter of an hour.
package-linux: prepare-run
	$(BIN)/python packaging/linux_package.py

# Installs what lies in dist/ in a bare Debian, as root, and tries it there.
package-test: prepare-test
	$(BIN)/python packaging/try_package.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build dist screenshots *.egg-info
	find app backends ui tests packaging -name __pycache__ -type d -prune -exec rm -rf {} +

prepare-run:
	@$(PYTHON) packaging/bootstrap.py run

prepare-test:
	@$(PYTHON) packaging/bootstrap.py test
