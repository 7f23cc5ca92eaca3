// Package plot draws small charts as SVG: lines over linear or logarithmic
// axes, and grouped bars. The pictures can be read on light and on dark
// backgrounds and without colours, and their text has one element per line, so
// that a change of numbers is a small difference in git.
package plot
