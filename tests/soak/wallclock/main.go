// Command wallclock writes an overlay for the go command (-overlay) with which a
// program can shift its wall clock: package time gets a function ShiftWall. As when
// the clock of a machine is set, the monotonic clock goes on, and with it timers and
// all that is measured between two calls of time.Now.
//
// Usage:
//
//	wallclock FOLDER
//
// It writes overlay.json and time.go to the folder. A program that calls
// time.ShiftWall has a build tag for it: it does not compile without the overlay.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// shifted is what becomes of the line of time.Now that reads the clock.
const (
	reads   = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	shifted = "\tsec, nsec, mono := runtimeNow()\n\tsec += wallShift.Load()\n\tif mono == 0 {"
	added   = `
var wallShift atomic.Int64 // seconds

// ShiftWall makes the wall clock of this process differ from the system's.
func ShiftWall(by Duration) { wallShift.Store(int64(by / Second)) }
`
	imports      = "import (\n"
	withAtomic   = "import (\n\t\"sync/atomic\"\n"
	overlayName  = "overlay.json"
	replacedName = "time.go"
)

var errOtherTime = errors.New("this version of Go reads the clock otherwise: change the text that is replaced")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wallclock FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "wallclock:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // It ends at once.
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(string(bytes.TrimSpace(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	changed, err := change(source)
	if err != nil {
		return fmt.Errorf("%s: %w", original, err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	replacement := filepath.Join(folder, replacedName)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(replacement, changed, 0o600),
		os.WriteFile(filepath.Join(folder, overlayName), overlay, 0o600))
}

// change returns the source of package time with a clock that can be shifted.
func change(source []byte) ([]byte, error) {
	for before, after := range map[string]string{reads: shifted, imports: withAtomic} {
		if bytes.Count(source, []byte(before)) != 1 {
			return nil, fmt.Errorf("%q: %w", before, errOtherTime)
		}
		source = bytes.Replace(source, []byte(before), []byte(after), 1)
	}
	return append(source, added...), nil
}
