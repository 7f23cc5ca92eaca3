package testwatchdog

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// header is the first line of a goroutine's stack: what it waits for, and for how many minutes if
// that is at least one.
var header = regexp.MustCompile(`^goroutine \d+ .*?\[([^],]+)(?:, (\d+) minutes)?`)

// frame is one call on a stack.
type frame struct {
	function string // with its package's path, without arguments
	position string // file:line
}

// hanging describes the tests among the goroutines that have waited for limit.
func hanging(stacks string, limit time.Duration) (hung []string) {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		lines := strings.Split(stack, "\n")
		state := header.FindStringSubmatch(lines[0])
		if state == nil || state[1] == "running" || state[1] == "runnable" {
			continue
		}
		minutes, _ := strconv.Atoi(state[2]) // empty: none
		waited := time.Duration(minutes) * time.Minute
		if waited < limit {
			continue
		}
		if name, at, ok := waitOf(frames(lines[1:])); ok {
			hung = append(hung, fmt.Sprintf("%s: %s at %s, for %v", name, state[1], at, waited))
		}
	}
	return hung
}

// frames reads the lines of a stack after its header, the innermost call first.
func frames(lines []string) (all []frame) {
	for i := 0; i+1 < len(lines); i += 2 {
		function := lines[i]
		if strings.HasPrefix(function, "created by ") {
			break
		}
		if end := strings.LastIndexByte(function, '('); end > 0 {
			function = function[:end]
		}
		position, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		all = append(all, frame{function, position})
	}
	return all
}

// waitOf returns the test whose goroutine this is, and the line in which it waits. It returns false
// if this is no test's goroutine, or if what it waits for is judged by itself.
func waitOf(stack []frame) (test, at string, ok bool) {
	for _, f := range stack {
		switch {
		case f.function == "testing.tRunner":
			return test, at, test != ""
		case !isStandard(f.function):
			if at == "" {
				at = f.position
			}
			test = path.Base(f.function) // the outermost is the test, or the function of a subtest
		case at == "" && waitsForAnother(f.function):
			return "", "", false
		}
	}
	return "", "", false
}

// isStandard reports whether a function is of the standard library, whose packages have no dot in
// the first element of their paths.
func isStandard(function string) bool {
	first, _, below := strings.Cut(function, "/")
	return !below || !strings.Contains(first, ".")
}

// waitsForAnother reports whether a function of the standard library waits for another test, another
// process, or what another goroutine does once.
func waitsForAnother(function string) bool {
	for _, of := range []string{"testing.", "os.(*Process).", "sync.(*Once)."} {
		if strings.HasPrefix(function, of) {
			return true
		}
	}
	return false
}
