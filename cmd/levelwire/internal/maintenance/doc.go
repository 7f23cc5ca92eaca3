// Package maintenance has the commands that save, restore, check and defragment the storage,
// of a running server or of a data directory.
package maintenance
