// Package ui holds the test of the page at /ui (docs/users/ui.md): a headless Chromium opens it
// from a `levelwire up`, and does what its users do. It is skipped, with one line, where there
// is no Chromium:
//
//	apt-get install chromium-headless-shell
//	make ui
//
// With UI_PICTURES=DIR it writes the pictures of the documentation there, with UI_PODS=N a list
// of N pods is measured as well (a million take 6 GB and some minutes), and with AXE=axe.min.js (of npm's axe-core) each view is checked for
// accessibility.
package ui
