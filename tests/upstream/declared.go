package upstream

import "regexp"

// declared are the errors that components log on Levelwire, and not on kube-apiserver, and why they stand.
var declared = []struct {
	component string
	line      *regexp.Regexp
	why       string
}{}

func isDeclared(component, line string) bool {
	for _, d := range declared {
		if d.component == component && d.line.MatchString(line) {
			return true
		}
	}
	return false
}
