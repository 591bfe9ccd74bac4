"""What an operator takes along from any screen: a line or all of it to the clipboard, or as files."""

from __future__ import annotations

import asyncio

from console.screens.base import Area, ConsoleApp


class TakingAlong(ConsoleApp):
    """An app whose screens can be copied and exported."""

    def do_copy_line(self) -> None:
        """Copy the line under the cursor."""
        from console.widgets.lines import Lines

        focused = self.screen.focused
        text = focused.copied if isinstance(focused, Lines) else ""
        self._copy(text, "the line under the cursor")

    def do_copy_screen(self) -> None:
        """Copy what is on the screen."""
        self._copy(self._screen_text(), "the screen")

    def _copy(self, text: str, what: str) -> None:
        if text:
            # In the terminal's own way (OSC 52), in base64: no text can act in it.
            self.copy_to_clipboard(text)
            self.say(f"copied {what}: {len(text)} characters")
        else:
            self.say("there is no line under a cursor to copy", severity="warning")

    def _screen_text(self) -> str:
        from console.exporting import text_of

        return text_of(self.screen._compositor.render_strips())

    async def do_export(self) -> None:
        """Save what is on the screen."""
        from console.exporting import save

        screen = self.screen
        name = f"{screen.scope if isinstance(screen, Area) else 'screen'}-{self.session.clock.now():%Y%m%dT%H%M%SZ}"
        texts = {".svg": self.export_screenshot(title=self.title), ".txt": self._screen_text()}
        try:
            made = await asyncio.to_thread(save, self.session.exports, name, texts)
        except OSError as error:
            self.say(f"not saved: {error}", severity="error")
        else:
            self.say(f"saved {made[0]} and {made[1].name}")
