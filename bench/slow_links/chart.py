"""Draws samples per second over link rate as an SVG that needs nothing beside itself."""

from __future__ import annotations

import math
from html import escape

from results import Cell, Spread
from rows import ONE_MACHINE, RATES, ROWS

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 620, 30, 460
COLOURS = ["#1b1b1b", "#0b6fb8", "#2a8a3e", "#8a6d00", "#b8400b", "#7b2fa0"]
LABEL_HEIGHT = 17

Point = tuple[float, float]


class Scale:
    """Rates at equal distances, slowest first; samples per second logarithmic between two round numbers."""

    def __init__(self, cells: list[Cell]) -> None:
        measured = [value for c in cells for s in (c.strait, c.torch) if s for value in (s.low, s.high)]
        self._rates = [rate for rate in reversed(RATES) if rate != ONE_MACHINE and any(c.rate == rate for c in cells)]
        self.ticks = [tick for power in range(-1, 6) for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power)]
        low = max((t for t in self.ticks if t <= min(measured)), default=self.ticks[0])
        high = min((t for t in self.ticks if t >= max(measured)), default=self.ticks[-1])
        self.ticks = [t for t in self.ticks if low <= t <= max(high, 2 * low)]

    @property
    def rates(self) -> list[str]:
        return self._rates

    def x(self, rate: str) -> float:
        step = (RIGHT - LEFT - 60) / max(1, len(self._rates) - 1)
        return LEFT + 30 + step * self._rates.index(rate)

    def y(self, value: float) -> float:
        low, high = math.log(self.ticks[0]), math.log(self.ticks[-1])
        return BOTTOM - (BOTTOM - TOP) * (math.log(value) - low) / (high - low)


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#1b1b1b") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def line(points: list[Point], colour: str, dashed: bool = False, width: float = 2) -> str:
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def axes(scale: Scale) -> list[str]:
    parts = []
    for tick in scale.ticks:
        parts.append(line([(LEFT, scale.y(tick)), (RIGHT, scale.y(tick))], "#dddddd", width=1))
        parts.append(text(LEFT - 8, scale.y(tick) + 5, f"{tick:g}", "end"))
    for rate in scale.rates:
        parts.append(text(scale.x(rate), BOTTOM + 22, rate, "middle"))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "rate of every link", "middle"))
    parts.append(text(LEFT - 50, TOP - 12, "samples per second"))
    return parts


def curve(scale: Scale, measured: dict[str, Spread], colour: str, dashed: bool) -> list[str]:
    """The medians, with a bar from the least to the greatest of several rounds."""
    points = [(scale.x(rate), scale.y(value.median)) for rate, value in measured.items()]
    bars = [line([(scale.x(rate), scale.y(value.low)), (scale.x(rate), scale.y(value.high))], colour)
            for rate, value in measured.items() if value.rounds > 1]
    marks = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{"white" if dashed else colour}" '
             f'stroke="{colour}" stroke-width="2"/>' for x, y in points]
    return [line(points, colour, dashed), *bars, *marks]


def legend(entries: list[tuple[str, str, bool]]) -> list[str]:
    """One line a curve, in the order of their values at the slowest link, as the eye meets them."""
    parts = []
    for i, (name, colour, dashed) in enumerate(entries):
        y = TOP + 10 + i * (LABEL_HEIGHT + 5)
        parts.append(line([(RIGHT + 20, y), (RIGHT + 50, y)], colour, dashed))
        parts.append(text(RIGHT + 58, y + 5, name, colour=colour))
    return parts


def draw(cells: list[Cell]) -> str:
    """The chart: strait's curves in full lines, PyTorch's dashed in the colour of the same codec."""
    scale = Scale(cells)
    parts, named = axes(scale), []
    for row, colour in zip(ROWS, COLOURS):
        for side, dashed in (("strait", False), ("PyTorch", True)):
            values = {c.rate: c.torch if dashed else c.strait for c in cells if c.row == row.name}
            measured = {rate: value for rate in scale.rates if (value := values.get(rate))}
            if measured:
                parts += curve(scale, measured, colour, dashed)
                named.append((next(iter(measured.values())).median, (f"{side}, {row.name}", colour, dashed)))
    named.sort(key=lambda entry: -entry[0])
    parts += legend([entry for _, entry in named])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" font-family="sans-serif" font-size="14">\n'
            f'<title>Training over slow links: samples per second</title>\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")
