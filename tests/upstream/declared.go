package upstream

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// declared are the errors that components log on Levelwire, and not on kube-apiserver, and why they stand.
var declared = []struct {
	component string
	line      *regexp.Regexp
	why       string
}{
	{
		"kube-controller-manager", regexp.MustCompile(`(read version: N is not as new as written version: N|Operation cannot be fulfilled on .*: the object has been modified)`),
		"a controller has seen that its informer lags behind its own write, or another's, and tries again: which objects that happens to, and how often, differs from run to run on either server",
	},
	{
		"hollow-1", regexp.MustCompile(`Failed to initialize CSINode: .*nodes "hollow-1" not found`),
		"the kubelet annotates its CSINode while it has not registered its node yet, and tries again: one that starts slowly logs it",
	},
}

func isDeclared(component, line string) bool {
	for _, d := range declared {
		if d.component == component && d.line.MatchString(line) {
			return true
		}
	}
	return false
}

// leaseTrouble is what components say that cannot renew their lease while the server is away, or find that of the run
// before. The last words are how they end then.
var leaseTrouble = regexp.MustCompile(`(?i)leader ?election|retrieving resource lock|(acquire|renew|update) lease|lease lost|context deadline exceeded`)

// isByFault reports whether a line says what faults cause on purpose: connections that break, and leases that are lost
// with them.
func isByFault(line string) bool {
	return brokenConnection.MatchString(line) || leaseTrouble.MatchString(line)
}

// describeWithFaults says which errors a component has logged while faults happened: of those that the faults cause how
// many, and all others line by line, with how often the component has logged them without faults.
func describeWithFaults(lines, without map[string]int) string {
	var others []string
	caused := 0
	for line, count := range lines {
		if isByFault(line) {
			caused += count
		} else {
			others = append(others, fmt.Sprintf("\n    %d times, without faults on kube-apiserver %d: %s", count, without[line], line))
		}
	}
	slices.Sort(others)
	return fmt.Sprintf("%d lines that the faults cause; %d others%s", caused, len(others), strings.Join(others, ""))
}
