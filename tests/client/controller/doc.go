// Package controller tests controllers against a real server; tests only.
package controller
