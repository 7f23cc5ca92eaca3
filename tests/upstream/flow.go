package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// settleTimeout is how long the objects may take to be the same as on kube-apiserver after faults.
const settleTimeout = 2 * time.Minute

// flow is what one file in testdata says: kubectl's command lines, which run in a namespace of
// the flow's name, and what is compared when they have run.
type flow struct {
	name  string
	steps []string
}

// readFlows reads the flows of a folder.
//
// An empty line, and one that begins with #, says nothing. Any other is a step. Most are command lines of kubectl, words
// separated by spaces; a file that one names is in the folder. To run it twice in a row must be the same as to run it once:
// a step whose connection broke is run again. These are not:
//
//   - "! COMMAND LINE" is one that the server must refuse.
//   - "compare KINDS" has the objects compared that there are then. Kinds and names are what kubectl get takes. A flow ends with one.
//   - "events KIND REASON..." waits until events about objects of the kind have these reasons, and fails if one has another:
//     see checkEvents.
//   - "logged COMPONENT N TEXT" waits until a component has logged a text N times since the flow began, and fails if it has
//     more often.
//   - "placed SELECTOR LABEL VALUE=N..." says how many pods are on nodes with a label's values: see checkPlacement. The objects
//     that are compared do not say that, because it is mostly left to the scheduler.
func readFlows(folder fs.FS) ([]flow, error) {
	names, err := fs.Glob(folder, "*.flow")
	if err != nil {
		return nil, err
	}
	flows := make([]flow, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		f := flow{name: strings.TrimSuffix(name, ".flow")}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
				f.steps = append(f.steps, line)
			}
		}
		if len(f.steps) == 0 || !strings.HasPrefix(f.steps[len(f.steps)-1], "compare ") {
			return nil, fmt.Errorf("%s does not end with what is compared", name)
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// flowRun is a flow that runs on a cluster.
type flowRun struct {
	*kubectl
	namespace string
	logs      logs
	// found has the objects of each step that compares. With others, it waits a while until they are the same: what faults
	// have held up may still come.
	found, others [][]object
}

// run runs a flow on a cluster, and returns the objects of each of its steps that compares. Others are those of another server, if
// there have been faults: see flowRun.
func (f flow) run(ctx context.Context, k *kubectl, others [][]object) ([][]object, error) {
	if _, err := k.run(ctx, "", "create", "namespace", f.name); err != nil {
		return nil, err
	}
	logs, err := newLogs(k.cluster.Running())
	if err != nil {
		return nil, err
	}
	r := &flowRun{kubectl: k, namespace: f.name, logs: logs, others: others}
	for _, step := range f.steps {
		if err := r.runStep(ctx, step); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

// compare notes the objects that there are now of kinds, or of names.
func (r *flowRun) compare(ctx context.Context, what string) error {
	var end []object
	if i := len(r.found); i < len(r.others) {
		end = r.others[i]
	}
	for limit := time.Now().Add(settleTimeout); ; {
		printed, err := r.run(ctx, r.namespace, append(append([]string{"get"}, strings.Fields(what)...), "-o", "json", "--show-managed-fields")...)
		if err != nil {
			return err
		}
		objects, err := readObjects(printed)
		if err != nil {
			return err
		}
		if end == nil || len(differences(objects, end)) == 0 || time.Now().After(limit) {
			r.found = append(r.found, objects)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// runStep runs a step that is one of those that readFlows describes.
func (r *flowRun) runStep(ctx context.Context, step string) error {
	word, rest, _ := strings.Cut(step, " ")
	switch word {
	case "!":
		_, err := r.run(ctx, r.namespace, strings.Fields(rest)...)
		switch {
		case err == nil:
			return fmt.Errorf("kubectl %s: the server did not refuse it", rest)
		case !strings.Contains(err.Error(), "Error from server"):
			return fmt.Errorf("it was not the server that refused it: %w", err)
		}
		return nil
	case "placed":
		return r.checkPlacement(ctx, r.namespace, rest)
	case "logged":
		return r.logs.await(ctx, rest)
	case "events":
		return r.checkEvents(ctx, r.namespace, rest)
	case "compare":
		return r.compare(ctx, rest)
	default:
		_, err := r.run(ctx, r.namespace, strings.Fields(step)...)
		return err
	}
}
