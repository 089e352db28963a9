"""The window: the rail at the left, one screen beside it, and what the whole window owns: actions, theme, geometry.

Heavy parts (plots) are made after the first paint, so that the window is there at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QMainWindow, QStackedWidget, QWidget

from app.chat.session_events import NoticeRaised
from app.chat.store import StoreError
from app.context import AppContext
from app.errors import Words
from app.i18n import _
from app.models.entry import ModelEntry
from ui.actions import ACTIONS, ActionId, build_actions, tint_actions
from ui.bridge import Bridge
from ui.notifications import NoticeLevel
from ui.panels.chat_screen import ChatScreen
from ui.panels.settings_panel import SettingsPanel
from ui.tasks import Tasks
from ui.theme import Theme, ThemeSwitch
from ui.widgets.rail import SCREENS, Rail
from ui.window_plots import WindowPlots

if TYPE_CHECKING:
    from ui.compare_screen import CompareScreen
    from ui.hub_screen import HubScreen
    from ui.models_screen import ModelsScreen

_MIN_WIDTH_PX, _MIN_HEIGHT_PX = 960, 600
_FIRST_WIDTH_PX, _FIRST_HEIGHT_PX = 1440, 900


class MainWindow(QMainWindow):
    """The one window.

    Attributes:
        chats: the chat screen.
        _hub: the hub's tabs of the models screen; made with it.
        _models: the models screen; None until the first paint is done, or it is asked for.
        _compare: the compare screen; None until it is asked for.
        plots: the cutaway panel and the Inspect screen; None until the first paint is done.

    Signals:
        closed(): the window is hidden and its geometry kept; the program may end.
    """

    closed = Signal()

    def __init__(self, context: AppContext, bridge: Bridge, theme_switch: ThemeSwitch) -> None:
        super().__init__()
        self._context = context
        self._bridge = bridge
        self._theme_switch = theme_switch
        theme = theme_switch.theme
        self.plots: WindowPlots | None = None
        self._tasks = Tasks(self._on_task_error, self)
        self.chats = ChatScreen(context, bridge, theme, self._tasks)
        self._models: ModelsScreen | None = None
        self._hub: HubScreen | None = None
        self._compare: CompareScreen | None = None
        self._rail = Rail(theme)
        self._screens = QStackedWidget()
        self._pages: dict[str, QWidget] = {}
        self._actions = build_actions(self, theme)
        self._build()
        self._connect()
        self._restore_geometry()

    def _build(self) -> None:
        self.setWindowTitle("Cutaway")
        self.setMinimumSize(_MIN_WIDTH_PX, _MIN_HEIGHT_PX)
        self.setAcceptDrops(True)
        paths = self._context.paths
        folders = {
            _("Chats"): str(paths.data),
            _("Settings"): str(paths.config),
            _("Models"): str(paths.models),
            _("Logs"): str(paths.logs),
        }
        self._pages = {
            "chat": self.chats,
            "models": QWidget(),  # likewise
            "compare": QWidget(),  # likewise
            "inspect": QWidget(),  # replaced once plots may be loaded
            "settings": SettingsPanel(self._context.settings, folders, app_version()),
        }
        for name, action_id in SCREENS.items():
            self._pages[name].setAccessibleName(ACTIONS[action_id].words())
            self._screens.addWidget(self._pages[name])
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._rail)
        row.addWidget(self._screens, 1)
        self.setCentralWidget(body)
        self._rail.set_screen("chat")

    def _connect(self) -> None:
        on_action = {
            ActionId.NEW_CHAT: self._on_new_chat,
            ActionId.FOLD_PANEL: self._on_fold,
            ActionId.FOCUS_PROMPT: self._on_focus_prompt,
            ActionId.SHOW_CHAT: lambda: self.show_screen("chat"),
            ActionId.SHOW_MODELS: lambda: self.show_screen("models"),
            ActionId.SHOW_COMPARE: lambda: self.show_screen("compare"),
            ActionId.SHOW_INSPECT: lambda: self.show_screen("inspect"),
            ActionId.SHOW_SETTINGS: lambda: self.show_screen("settings"),
            ActionId.SWITCH_THEME: self._on_switch_theme,
            ActionId.QUIT: self.close,
        }
        # Stop is not among them: Esc belongs to the composer, which knows whether there is an answer
        for action_id, slot in on_action.items():
            self._actions[action_id].triggered.connect(slot)
            self.addAction(self._actions[action_id])
        self._rail.chosen.connect(self.show_screen)
        self._theme_switch.changed.connect(self.set_theme)
        self.chats.file_requested.connect(self.choose_file)
        self.chats.pick_requested.connect(self._on_pick)
        self.chats.fold_requested.connect(self._on_fold)
        self._context.store.on_problem(self._on_store_problem)

    # ----------------------------------------------------------------------------------------- public

    @property
    def models(self) -> ModelsScreen:
        """The models screen, made when it is first needed: it takes longer to load than the rest of the window."""
        if self._models is None:
            from ui.models_screen import ModelsScreen

            self._models = made = ModelsScreen(self._context, self._bridge, self._theme_switch.theme, self._tasks, self)
            made.use_requested.connect(self._on_use_model)
            made.file_requested.connect(self.choose_file)
            made.folder_requested.connect(self.choose_folder)
            made.models_changed.connect(self.chats.refresh_models)
            made.shown_requested.connect(lambda: self.show_screen("models"))
            made.panel.told.connect(lambda text: self.tell("models", Words(text), NoticeLevel.FACT))
            self._put_page("models", made.page)
            self._hub = self._make_hub(made)
        return self._models

    @property
    def compare(self) -> CompareScreen:
        """The compare screen, made when it is first needed: what it computes with takes long to load."""
        if self._compare is None:
            from ui.compare_screen import CompareScreen

            self._compare = made = CompareScreen(self._context, self._theme_switch.theme, self._tasks, self)
            made.use_requested.connect(self._on_use_model)
            made.models_requested.connect(lambda: self.show_screen("models"))
            made.quantize_requested.connect(self.models.quantizing.open)
            made.told.connect(lambda text: self.tell("compare", Words(text), NoticeLevel.FACT))
            self.models.models_changed.connect(made.refresh)
            self._put_page("compare", made.page)
        return self._compare

    @Slot(str)
    def show_screen(self, name: str) -> None:
        """Show a screen by its name in the rail; Tab goes on from its beginning, in the chat from the prompt."""
        if name == "models":
            self.models.refresh()
            self.models.show()
            self.models.panel.choose(self.chats.status.entry.key if self.chats.status.entry else "")
        elif self._models is not None:
            self._models.hide()
        if name == "compare":
            self.compare.refresh()
            self.compare.show()
        elif self._compare is not None:
            self._compare.hide()
        page = self._pages[name]
        self._rail.set_screen(name)
        self._screens.setCurrentWidget(page)
        (self.chats.chat.composer.prompt if page is self.chats else page).setFocus()

    def open_files(self, files: list[str]) -> None:
        """Add model files and folders to the library where they lie, and use the last model among them."""
        self.models.add([Path(file) for file in files], use=True)

    def tell(self, key: str, words: Words, level: NoticeLevel = NoticeLevel.WARNING) -> None:
        """Show a notice that stays until it is dismissed."""
        self.chats.chat.notices.show_notice(key, words.message, words.hint, level)

    def start(self) -> None:
        """Load the model of last time, show what must be told, and make the plots."""
        for notice in self._context.notices:
            self.tell(notice.key, notice.words)
        entry = self._context.preferred_model()
        for text in self._context.library.notices():
            self.tell(text, Words(text))
        if entry is not None:
            self.chats.status.load(entry)
        self.chats.refresh_models()
        self.models.scan()
        self.plots = WindowPlots(self._context, self._bridge, self._theme_switch.theme, self)
        self.plots.panel.live_text_changed.connect(self.chats.chat.set_panel_line)
        self.plots.panel.folded_changed.connect(self._on_folded)
        self.plots.told.connect(lambda text: self.tell("plots", Words(text), NoticeLevel.FACT))
        self.chats.set_side_panel(self.plots.panel)
        self._put_page("inspect", self.plots.inspect)
        self.plots.panel.set_folded(self._context.settings.get().panel_folded)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        tint_actions(self._actions, theme)
        self._rail.set_theme(theme)
        self.chats.set_theme(theme)
        if self._models is not None:
            self._models.set_theme(theme)
        if self._compare is not None:
            self._compare.set_theme(theme)
        if self.plots is not None:
            self.plots.set_theme(theme)

    @Slot()
    def choose_file(self) -> None:
        """Let a person choose a model file."""
        file, _filter = QFileDialog.getOpenFileName(self, _("Choose a model file"), "", _("Models (*.gguf)"))
        if file:
            self.open_files([file])

    @Slot()
    def choose_folder(self) -> None:
        """Let a person choose a folder of models."""
        folder = QFileDialog.getExistingDirectory(self, _("Choose a folder of models"))
        if folder:
            self.models.add([Path(folder)], use=False)

    def finish(self) -> None:
        """Wait for what runs in the background; the window is hidden by then."""
        self._close_screens()
        if self._hub is not None:
            self._hub.finish()
        if self._compare is not None:
            self._compare.finish()
        self._tasks.wait_all()

    # --------------------------------------------------------------------------- the store's own thread

    def _on_store_problem(self, problem: StoreError) -> None:
        self._bridge.on_session_event(NoticeRaised("store", problem.words))

    # ------------------------------------------------------------------------------------------ slots

    @Slot()
    def _on_new_chat(self) -> None:
        self.show_screen("chat")
        self.chats.new_chat()

    @Slot()
    def _on_fold(self) -> None:
        if self.plots is not None:
            self.show_screen("chat")
            self.plots.panel.set_folded(not self.plots.panel.is_folded)

    @Slot(bool)
    def _on_folded(self, is_folded: bool) -> None:
        self.chats.make_room()
        self._context.settings.change(panel_folded=is_folded)

    @Slot()
    def _on_focus_prompt(self) -> None:
        self.show_screen("chat")

    @Slot()
    def _on_switch_theme(self) -> None:
        mode = "light" if self._theme_switch.theme.name == "dark" else "dark"
        self._context.settings.change(theme=mode)

    @Slot()
    def _on_pick(self) -> None:
        self.show_screen("models")
        self.models.panel.show_tab("picked")

    @Slot(object)
    def _on_use_model(self, entry: ModelEntry) -> None:
        self.chats.use_entry(entry)
        self.show_screen("chat")

    def _on_task_error(self, words: Words) -> None:
        self.tell(f"task {words.message}", words, NoticeLevel.ERROR)

    # --------------------------------------------------------------------------------------- Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        """Put the cursor where a person writes."""
        super().showEvent(event)
        self.chats.chat.composer.prompt.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Keep the geometry, hide at once, and let the program end."""
        geometry = bytes(self.saveGeometry().toBase64().data()).decode()
        self._context.settings.change(window_geometry=geometry)
        self.chats.list.undo_bar.finish()
        self.chats.close_xrays()
        self._close_screens()
        self._bridge.close()
        if self.plots is not None:
            self.plots.stop()
        event.accept()
        self.hide()
        QTimer.singleShot(0, self.closed.emit)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take model files, and folders of models."""
        if any(_may_be_model(Path(url.toLocalFile())) for url in event.mimeData().urls() if url.isLocalFile()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Add what was dropped where it lies."""
        self.open_files([url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()])

    def _put_page(self, name: str, page: QWidget) -> None:
        """Put a screen where an empty page kept its place."""
        index = self._screens.indexOf(self._pages[name])
        is_current = self._screens.currentIndex() == index
        self._screens.removeWidget(self._pages[name])
        self._screens.insertWidget(index, page)
        page.setAccessibleName(ACTIONS[SCREENS[name]].words())
        self._pages[name] = page
        if is_current:
            self._screens.setCurrentWidget(page)

    def _make_hub(self, models: ModelsScreen) -> HubScreen:
        """Connect the hub's tabs of the models screen; nothing is asked of the network before a person asks."""
        from ui.hub_screen import HubScreen

        hub = HubScreen(self._context, self._bridge, models.panel, self._tasks, models.tell)
        hub.use_requested.connect(self._on_use_model)
        hub.models_changed.connect(models.on_library_changed)
        models.models_changed.connect(hub.refresh)
        hub.start()
        return hub

    def _close_screens(self) -> None:
        if self._models is not None:
            self._models.close()
        if self._hub is not None:
            self._hub.close()
        if self._compare is not None:
            self._compare.close()

    def _restore_geometry(self) -> None:
        stored = self._context.settings.get().window_geometry
        if not stored or not self.restoreGeometry(QByteArray.fromBase64(stored.encode())):
            self.resize(_FIRST_WIDTH_PX, _FIRST_HEIGHT_PX)


def _may_be_model(path: Path) -> bool:
    return path.suffix.lower() in (".gguf", ".safetensors") or path.is_dir()


def app_version() -> str:
    """Return the program's version."""
    from importlib import metadata

    try:
        return metadata.version("cutaway")
    except metadata.PackageNotFoundError:
        return "0.1.0"
