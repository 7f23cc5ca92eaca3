//go:build !unix

package listen

func openFilesLimit() uint64 { return 0 }
