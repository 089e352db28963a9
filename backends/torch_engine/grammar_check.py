"""The grammar check: reads a grammar in a process of its own, which can be ended.

Started as `<python> -I <absolute path>`; takes a grammar in llguidance's notation from its standard input and writes
what is wrong with it, nothing for a sound one, to its standard output. A grammar of a few lines can keep the library
busy for minutes or exhaust its stack, and neither must happen to an engine. Imports nothing of the tree.
"""

from __future__ import annotations

import contextlib
import sys

from llguidance import LLMatcher, LLParserLimits

_MEMORY_LIMIT_BYTES = 2 * 1024**3  # address space; a sound grammar takes a few MiB


def main() -> int:
    """Check one grammar and return the exit code."""
    _be_modest()
    grammar = LLMatcher.grammar_from_lark(sys.stdin.buffer.read().decode())
    found = LLMatcher.validate_grammar(grammar, None, limits=LLParserLimits(verbose_errors=False))
    sys.stdout.buffer.write(found.encode())
    return 0


def _be_modest() -> None:
    """Bound the memory, where the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
