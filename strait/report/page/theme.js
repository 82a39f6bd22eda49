"use strict";

// Colours that stay apart for colour-blind readers, at least 3:1 against their background; dashes tell apart
// what is left, and repeat in another order after eight. The first, ink, is usually the uncompressed run.
const kThemes = {
  light: {
    ink: "#1d2026", muted: "#59606b", grid: "#e6e8ec", surface: "#ffffff", paper: "#ffffff",
    series: ["#1d2026", "#0072b2", "#d55e00", "#00805c", "#a5478a", "#8a6d00", "#2a8fc7", "#c2334d"],
  },
  dark: {
    ink: "#e6e8eb", muted: "#a3abb6", grid: "#2b3038", surface: "#1d2127", paper: "#15181d",
    series: ["#e6e8eb", "#5cb0ec", "#ff8f52", "#3ccfa0", "#d99ad0", "#e3c04a", "#a5dcff", "#ff8799"],
  },
};
const kDashes = [[], [7, 3], [2, 2], [10, 3, 2, 3]];

const darkScreen = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function theme() {
  return darkScreen.matches && !printing ? kThemes.dark : kThemes.light;
}

function colourOf(index) {
  const colours = theme().series;
  return colours[index % colours.length];
}

function dashOf(index) {
  return kDashes[(index + Math.floor(index / 8)) % kDashes.length];
}

// The colour with the opacity of a band.
function faint(colour, opacity = "2e") {
  return colour + opacity;
}
