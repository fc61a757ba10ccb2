"""A window on the screen, with pygame. It shows the painter's pixels; it draws nothing itself."""

from __future__ import annotations

from typing import Any

from mapf_frozenlake.render.raster import rgb_array
from mapf_frozenlake.world.snapshot import Snapshot


class Window:
    """Opens with the first picture, keeps the frame rate, and closes on ``close`` or with its owner."""

    def __init__(self, fps: float = 4) -> None:
        self.fps = fps
        self._pygame: Any = None
        self._screen: Any = None
        self._clock: Any = None

    def show(self, snapshot: Snapshot) -> None:
        pixels = rgb_array(snapshot)
        size = (pixels.shape[1], pixels.shape[0])
        if self._pygame is None:
            self._pygame = _pygame()
            self._pygame.display.init()
            self._clock = self._pygame.time.Clock()
        if self._screen is None or self._screen.get_size() != size:
            self._screen = self._pygame.display.set_mode(size)
            self._pygame.display.set_caption("MAPF-FrozenLake")
        self._pygame.event.pump()
        self._screen.blit(self._pygame.surfarray.make_surface(pixels.swapaxes(0, 1)), (0, 0))
        self._pygame.display.flip()
        self._clock.tick(self.fps)

    def close(self) -> None:
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = self._screen = self._clock = None


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise ImportError(
            'render_mode="human" needs pygame: pip install "mapf-frozenlake[render]", or in a checkout pip install -e ".[render]"'
        ) from error
    return pygame
