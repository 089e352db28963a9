"""How blocks look: told apart in colour, in grey, and by their form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ui.plots import block_grid, block_sprites
from ui.plots.block_grid import FREE_KIND, KEPT_KIND, LEVELS, MARKED, NUM_KINDS, TINTS, shared_kind, used_kind
from ui.theme import load_theme

THEMES = [load_theme("dark"), load_theme("light")]


def luminance(color):
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color.getRgbF()[:3]]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(first, second):
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_sequences_differ_in_lightness_and_stand_out_from_the_surface(theme):
    tints = [block_sprites.tint_color(theme, tint) for tint in range(TINTS)]
    for tint in tints:
        assert contrast(tint, theme.color("surface")) >= 3.0
    for first, second in itertools.combinations(tints, 2):
        assert contrast(first, second) >= 1.3


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize(
    ("step_px", "scale"), [(6, 1.0), (9, 1.0), (14, 1.0), (12, 2.0), (18, 2.0), (21, 1.5), (42, 3.0)]
)
def test_every_kind_has_a_picture_of_its_own(qapp, theme, step_px, scale):
    pictures = block_sprites.block_pictures(theme, step_px, scale)
    assert pictures.shape == (NUM_KINDS, step_px, step_px)
    states = [FREE_KIND, KEPT_KIND, shared_kind(), *(used_kind(tint) for tint in range(TINTS))]
    states += [kind + MARKED for kind in states]
    for first, second in itertools.combinations(states, 2):
        assert not np.array_equal(pictures[first], pictures[second])
    # The gap at the right and below is empty in every one.
    surface = theme.color("surface").rgb()
    assert np.all(pictures[:, :, -1] == surface)
    assert np.all(pictures[:, -1, :] == surface)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_used_is_solid_kept_is_hollow_shared_has_a_dot_and_free_is_hatched(qapp, theme):
    pictures = block_sprites.block_pictures(theme, 28, 2.0)
    kv, surface = theme.color("kv").rgb(), theme.color("surface").rgb()
    middle, beside = (12, 12), (12, 3)
    assert pictures[used_kind(0)][middle] == kv
    assert pictures[KEPT_KIND][middle] == surface
    assert (pictures[KEPT_KIND] == kv).any()
    assert pictures[shared_kind()][middle] == surface
    assert pictures[shared_kind()][beside] == kv
    assert not (pictures[FREE_KIND] == kv).any()
    assert len(np.unique(pictures[FREE_KIND])) > 3
    assert (pictures[FREE_KIND][:24, :24] == surface).mean() > 0.2


def test_a_block_fills_from_the_left(qapp):
    theme = THEMES[0]
    pictures = block_sprites.block_pictures(theme, 28, 2.0)
    solid = [
        int((pictures[used_kind(0, level)][12] == theme.color("kv").rgb()).sum()) for level in range(1, LEVELS + 1)
    ]
    assert solid == sorted(solid)
    assert solid[-1] - solid[0] >= 16
    assert pictures[used_kind(0, 4)][12, 2] == theme.color("kv").rgb()


def test_the_pixels_of_an_image_are_its_own_memory(qapp):
    image = block_sprites.QImage(3, 2, block_sprites.QImage.Format.Format_RGB32)
    image.fill(0)
    block_sprites.pixels_of(image)[1, 2] = 0xFF102030
    assert image.pixel(2, 1) == 0xFF102030
    assert block_grid.NUM_KINDS == 2 * MARKED
