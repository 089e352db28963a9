"""What an installed program leaves out of the packages it is made of.

A test loads the whole window and checks that nothing of what it loaded is on these lists; what is named by pattern is
left out of every package, PySide6 is taken by what is kept. Knows paths only, as they are below app_packages/.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

# Left out wherever it is: for building, for testing, for reading.
_PATTERNS = (
    "*.pyi",
    "*.pyc",
    "*.a",
    "*.h",
    "*.hpp",
    "*.pxd",
    "*.exe",
    "*/tests/*",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "bin/*",
    "numpy/_core/include/*",
    "numpy/_core/lib/*",
    "numpy/random/_examples/*",
    "numpy/random/lib/*",
    "numpy/f2py/*",
    "numpy/distutils/*",
    "numpy/_pyinstaller/*",
    "pyqtgraph/examples/*",
    "llama_cpp/lib/*",  # the engine's own folder holds it, in builds for every processor
    "llama_cpp/server/*",
    "llama_cpp/_ggml.py",  # would load a second ggml
    # The program draws from one font; the others come with the same package.
    "qtawesome/fonts/codicon*",
    "qtawesome/fonts/elusiveicons*",
    "qtawesome/fonts/fontawesome*",
    "qtawesome/fonts/materialdesignicons5*",
    "qtawesome/fonts/phosphor*",
    "qtawesome/fonts/remixicon*",
)

# Of PySide6: the modules of Python, and the libraries that they and the plugins need.
_QT_MODULES = {"Core", "DBus", "Gui", "Network", "OpenGL", "OpenGLWidgets", "Svg", "Widgets"}
_QT_LIBRARIES = _QT_MODULES | {"WaylandClient", "WlShellIntegration", "XcbQpa"}
_QT_PLUGINS = (
    "iconengines/*",
    "imageformats/libqgif.so",
    "imageformats/libqico.so",
    "imageformats/libqjpeg.so",
    "imageformats/libqsvg.so",
    "imageformats/libqwebp.so",
    "platforminputcontexts/libcomposeplatforminputcontextplugin.so",  # dead keys
    "platforminputcontexts/libibusplatforminputcontextplugin.so",  # Chinese, Japanese, Korean
    "platforms/libqminimal.so",
    "platforms/libqoffscreen.so",
    "platforms/libqwayland.so",
    "platforms/libqxcb.so",
    "platformthemes/*",  # the system's own file dialogs
    "styles/*",
    "tls/*",
    "wayland-decoration-client/*",
    "wayland-graphics-integration-client/libqt-plugin-wayland-egl.so",
    "wayland-shell-integration/libxdg-shell.so",
    "xcbglintegrations/*",
)
_QT_LIBRARY = re.compile(r"lib(Qt6(?P<name>\w+)|icu\w+)\.so\.[\d.]+")
_QT_MODULE = re.compile(r"Qt(?P<name>\w+)\.abi3\.so")
_PYSIDE_FILES = ("__init__.py", "_config.py", "_git_pyside_version.py", "py.typed", "support/*.py")


def is_left_out(path: PurePosixPath) -> bool:
    """Return whether an installed program goes without this file.

    Args:
        path: relative to app_packages/.
    """
    if any(fnmatchcase(str(path), pattern) for pattern in _PATTERNS):
        return True
    return path.parts[0] == "PySide6" and not _is_kept_of_pyside(PurePosixPath(*path.parts[1:]))


def _is_kept_of_pyside(path: PurePosixPath) -> bool:
    text = str(path)
    if module := _QT_MODULE.fullmatch(text):
        return module["name"] in _QT_MODULES
    if path.parts[:2] == ("Qt", "lib"):
        library = _QT_LIBRARY.fullmatch(path.name)
        return library is not None and (library["name"] is None or library["name"] in _QT_LIBRARIES)
    if path.parts[:2] == ("Qt", "plugins"):
        return any(fnmatchcase("/".join(path.parts[2:]), pattern) for pattern in _QT_PLUGINS)
    if path.parts[:2] == ("Qt", "translations"):
        return path.name.startswith("qtbase_")
    return text.startswith("libpyside6.") or any(fnmatchcase(text, pattern) for pattern in _PYSIDE_FILES)
