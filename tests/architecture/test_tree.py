"""Every module has its test file, no folder hides a library, no file tells of one machine; and each rule can fail."""

from __future__ import annotations

from tests.architecture import tree_rules as rules
from tests.architecture.source import LAYERS, ROOT, SourceFile, python_files, tree_files

# The folders and files that the project's owner fixed; a new one is a decision of its own.
TOP_LEVEL = {
    *("app", "ui", "backends", "resources", "tests", "packaging", ".ci"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
    *("Makefile", "constraints.txt", "pyproject.toml", ".gitignore", ".gitattributes"),
}


def tree_paths() -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in tree_files()]


def texts(*suffixes: str) -> dict[str, str]:
    """The files that hold text, by path; with these suffixes only, if any are given."""
    found = {}
    for path in tree_files():
        content = path.read_bytes()
        if b"\0" not in content[:8_192] and (not suffixes or path.suffix in suffixes):
            found[path.relative_to(ROOT).as_posix()] = content.decode("utf-8", errors="replace")
    return found


def test_every_module_has_its_test_file():
    sources = [file.path for file in python_files(*LAYERS, "packaging")]
    offences = rules.missing_test_file(sources, [file.path for file in python_files("tests")])
    assert offences == [], rules.lines(offences)


def test_a_missing_test_file_is_found():
    sources = ["app/__init__.py", "ui/main.py", "app/chat/store.py", "app/paths.py"]
    assert rules.missing_test_file(sources, ["tests/app/test_paths.py", "tests/app/test_store.py"]) == [
        "app/chat/store.py has no tests/app/chat/test_store.py"
    ]


def test_every_exemption_from_a_test_file_names_a_file_that_lies_where_it_may():
    assert all(path.split("/")[0] in LAYERS and reason for path, reason in rules.UNMIRRORED.items())


def test_no_init_holds_code():
    offences = [offence for file in python_files(*LAYERS) for offence in rules.code_in_init(file)]
    assert offences == [], rules.lines(offences)


def test_code_in_an_init_is_found():
    assert len(rules.code_in_init(SourceFile("app/__init__.py", "def f(): ..."))) == 1
    assert rules.code_in_init(SourceFile("app/a.py", "def f(): ...")) == []
    assert rules.code_in_init(SourceFile("ui/plots/__init__.py", "PLOTS = (1, 2)")) == []


def test_no_init_stands_in_packaging_or_tests():
    assert rules.misplaced_init(tree_paths()) == []


def test_a_misplaced_init_is_found():
    wrong = ["packaging/__init__.py", "packaging/linux/__init__.py", "tests/__init__.py", "tests/app/__init__.py"]
    assert rules.misplaced_init([*wrong, "app/__init__.py"]) == wrong


def test_no_folder_hides_a_library():
    assert rules.shadowing_folder(tree_paths()) == []


def test_a_folder_that_hides_a_library_is_found():
    wrong = ["torch/a.py", "backends/llama_cpp/engine.py"]
    assert rules.shadowing_folder([*wrong, "backends/llama_cpp_engine/engine.py", "docs/torch"]) == wrong


def test_no_other_top_level_folder_or_file():
    assert {path.split("/")[0] for path in tree_paths()} - TOP_LEVEL == set()


def test_no_file_tells_of_one_machine_or_registry():
    offences = [offence for path, text in texts().items() for offence in rules.foreign_text(path, text)]
    assert offences == [], rules.lines(offences)


def test_a_machine_path_or_registry_host_is_found():
    folder, host = "/" + "work/main", "https://pypi." + "org/simple"
    assert rules.foreign_text("a.md", f"fine\nsee {folder}\n{host}") == [f"a.md:2 see {folder}", f"a.md:3 {host}"]
    assert rules.foreign_text("a.md", "PyPI, ~/work/notes, home/work/x, the network/work/life") == []


def test_no_style_sheet_holds_a_colour():
    offences = [offence for path, text in texts(".qss").items() for offence in rules.colour_in_stylesheet(path, text)]
    assert offences == [], rules.lines(offences)


def test_a_colour_in_a_style_sheet_is_found():
    assert rules.colour_in_stylesheet("a.qss", "QLabel#name { color: #ff0000; border: $line }") == ["a.qss #ff0000"]


def test_the_dependency_tables_name_every_pin():
    words = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").lower()
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    pairs = [pin.split("==") for pin in pins if "==" in pin]
    absent = [f"{name} {pin}" for name, pin in pairs if f"{name} | {pin}" not in words and f"{name} {pin}" not in words]
    assert absent == []


def test_the_pins_name_no_address():
    assert "/" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")
