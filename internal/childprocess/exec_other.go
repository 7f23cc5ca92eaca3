//go:build !unix

package childprocess

import "os"

// closeOnExec keeps a file from children, which inherit only what they are given here.
func closeOnExec(*os.File) {}
