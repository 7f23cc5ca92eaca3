package upstream

import "regexp"

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
