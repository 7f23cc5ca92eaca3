package upstream

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// stepTimeout is how long a step may take, however often it is run; it waits for what controllers do.
const stepTimeout = 5 * time.Minute

// brokenConnection is what kubectl says when the server was away, or went away before it had answered.
var brokenConnection = regexp.MustCompile(`connection refused|was refused|connection reset by peer|broken pipe|EOF|TLS handshake timeout|i/o timeout|` +
	`client connection (lost|force closed)|server sent GOAWAY|watch closed|unable to handle the request|too many requests|may still be processing the request`)

// carriedOut is what kubectl says, by its command, when a step is run again that the server had carried out before the
// connection broke.
var carriedOut = map[string]*regexp.Regexp{
	"create":  regexp.MustCompile(`already exists|pods ".*" not found`), // the latter: evicted
	"expose":  regexp.MustCompile(`already exists`),
	"delete":  regexp.MustCompile(`not found`),
	"patch":   regexp.MustCompile(`not found`),
	"taint":   regexp.MustCompile(`already has .* taint|taint .* not found`),
	"rollout": regexp.MustCompile(`is already paused|unable to find specified revision`),
}

// nothingYet is what kubectl wait says, and ends with, if no object matches when it begins, unless it waits for their deletion.
const nothingYet = "error: no matching resources found"

// nothingYetPause is how long after that it is run again.
const nothingYetPause = 200 * time.Millisecond

// kubectl runs the steps of flows on a cluster.
type kubectl struct {
	cluster    *cluster.Cluster
	folder     string // has the files that steps name
	repeats    bool   // whether faults break kubectl's connections, too: then a step is repeated
	eventsLost bool   // whether faults lose events
	repeated   int    // how many steps were run again because the connection broke
}

// run runs a step in a namespace, or outside any if that is empty, and returns what kubectl prints. If faults break kubectl's
// connections, it runs kubectl again when that was so, once the server is ready. Steps are such that a second time changes
// nothing; some say so with an error. One that waits for objects is also run again while there are none.
func (k *kubectl) run(ctx context.Context, namespace string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for again := false; ; again = true {
		printed, err := k.cluster.Kubectl(ctx, k.folder, namespace, args...)
		switch {
		case err == nil, again && wasCarriedOut(args, err):
			return printed, nil
		case args[0] == "wait" && strings.Contains(err.Error(), nothingYet):
			select {
			case <-time.After(nothingYetPause):
				continue
			case <-ctx.Done():
				return nil, errors.Join(err, ctx.Err())
			}
		case !k.repeats || !brokenConnection.MatchString(err.Error()):
			return nil, err
		}
		k.repeated++
		if notReady := k.cluster.AwaitReady(ctx); notReady != nil {
			return nil, errors.Join(err, notReady)
		}
	}
}

// wasCarriedOut reports whether all that kubectl complains of is that there is nothing to do.
func wasCarriedOut(args []string, err error) bool {
	nothingToDo := carriedOut[args[0]]
	if nothingToDo == nil {
		return false
	}
	complaints := slices.DeleteFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "Error from server") && !strings.HasPrefix(line, "error: ")
	})
	return len(complaints) > 0 && !slices.ContainsFunc(complaints, func(line string) bool { return !nothingToDo.MatchString(line) })
}
