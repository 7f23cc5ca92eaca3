// Package inspect answers the debug API: what the watch caches hold, who watches them, the
// changes that their logs have, and windows of lists. The types and paths are in package
// debugapi. Nothing is recorded for it: an answer is made from what the server has anyway.
package inspect
