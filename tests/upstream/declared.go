package upstream

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// declared are the errors that components log on Levelwire, and not on kube-apiserver, and why they stand. Lines have their
// file first, as errorLines returns them.
var declared = []struct {
	component string
	line      *regexp.Regexp
	why       string
}{
	{
		"kube-controller-manager", regexp.MustCompile(`read version: N is not as new as written version: N`),
		"a controller has seen that its informer lags behind its own write, and tries again: which objects that happens to, and how often, differs from run to run on either server",
	},
	{
		"kube-controller-manager", regexp.MustCompile(`^disruption\.go:\d+\] .*Operation cannot be fulfilled on poddisruptionbudgets\.policy `),
		"the server writes the status of a budget when it lets a pod be evicted, and the controller when pods change: one comes second, and tries again",
	},
	{
		"kube-controller-manager", regexp.MustCompile(`^pvc_protection_controller\.go:\d+\] .*Operation cannot be fulfilled on persistentvolumeclaims `),
		"this controller writes finalizers and a condition of a claim while another one binds it: one comes second, and tries again",
	},
	{
		"kube-controller-manager", regexp.MustCompile(`^replica_set\.go:\d+\] .*sync \\"(cascade/foreground|preemption/unimportant)-\*\\" failed with replicasets\.apps .* not found`),
		"a ReplicaSet that is deleted in the foreground goes with its last pod, and that pod's end has the controller write the status: one comes first",
	},
	{
		"hollow-1", regexp.MustCompile(`Failed to initialize CSINode: .*nodes "hollow-1" not found`),
		"the kubelet annotates its CSINode while it has not registered its node yet, and tries again: one that starts slowly logs it",
	},
	{
		"hollow-1", regexp.MustCompile(`^kubelet_node_status\.go:\d+\] "Error updating node status, will retry" err=".*node \\"hollow-1\\" not found"`),
		"the kubelet has registered its node, and looks for it in its informer at once: an answer within two milliseconds comes before the informer's event. It then asks the server",
	},
	{
		"hollow-1", regexp.MustCompile(`"Skipping pod synchronization" err=".*PLEG is not healthy: pleg has yet to be successful`),
		"it says what its runtime lacks in its first second, and that is one thing or two",
	},
}

// tooMany reports whether a component has logged more of what both servers have than chance explains. Two runs on one server
// differ by a factor of two or three where controllers race, and one that is retried with a delay that begins at 5 ms and
// doubles has logged ten lines within five seconds. What never comes right goes on.
func tooMany(ours, theirs int) bool { return ours > 3*theirs+10 }

// complaints returns what is wrong with the errors that a component has logged on Levelwire, beside those on kube-apiserver: there
// are none there, or far fewer. Declared ones are counted together, since which objects they are about is chance.
func complaints(component string, ours, theirs map[string]int) (found []string) {
	declaredOurs, declaredTheirs := make([]int, len(declared)), make([]int, len(declared))
	for line, count := range theirs {
		if i := declaredAt(component, line); i >= 0 {
			declaredTheirs[i] += count
		}
	}
	for line, count := range ours {
		switch i := declaredAt(component, line); {
		case i >= 0:
			declaredOurs[i] += count
		case theirs[line] == 0:
			found = append(found, "only on Levelwire: "+line)
		case tooMany(count, theirs[line]):
			found = append(found, fmt.Sprintf("%d times on Levelwire, and %d on kube-apiserver: %s", count, theirs[line], line))
		}
	}
	for i, d := range declared {
		if tooMany(declaredOurs[i], declaredTheirs[i]) {
			found = append(found, fmt.Sprintf("%d lines on Levelwire, and %d on kube-apiserver, that match %s", declaredOurs[i], declaredTheirs[i], d.line))
		}
	}
	slices.Sort(found)
	return found
}

// declaredAt returns the index of what declares a line, or -1.
func declaredAt(component, line string) int {
	for i, d := range declared {
		if d.component == component && d.line.MatchString(line) {
			return i
		}
	}
	return -1
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
