// Package events tests the recorder of events against a real server; tests only.
package events
