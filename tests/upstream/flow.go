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
	name    string
	steps   []string
	compare string // kinds, as kubectl get takes them
}

// readFlows reads the flows of a folder.
//
// An empty line, and one that begins with #, says nothing. "compare KINDS" names what is compared. Any other
// line is a command line of kubectl, words separated by spaces; a file that it names is in the folder. To run it
// twice in a row must be the same as to run it once: a step whose connection broke is run again. After "! " stands a command
// line that the server must refuse. "logged COMPONENT N TEXT" waits until a component has logged a text N times since the flow
// began, and fails if it has more often. "placed SELECTOR LABEL VALUE=N..." says how many pods are on nodes with a label's values:
// see checkPlacement. The objects that are compared do not say that, because it is mostly left to the scheduler.
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
			line := strings.TrimSpace(lines.Text())
			kinds, compares := strings.CutPrefix(line, "compare ")
			switch {
			case line == "", strings.HasPrefix(line, "#"):
			case compares:
				f.compare = kinds
			default:
				f.steps = append(f.steps, line)
			}
		}
		if f.compare == "" {
			return nil, fmt.Errorf("%s compares nothing", name)
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// run runs a flow on a cluster, and returns the objects at its end. What faults have held up may still come after the
// last step: with an end to compare with, run waits a while until the objects are the same.
func (f flow) run(ctx context.Context, k *kubectl, end []object) ([]object, error) {
	if _, err := k.run(ctx, "", "create", "namespace", f.name); err != nil {
		return nil, err
	}
	logs, err := newLogs(k.cluster.Running())
	if err != nil {
		return nil, err
	}
	for _, step := range f.steps {
		if err := f.runStep(ctx, k, logs, step); err != nil {
			return nil, err
		}
	}
	for limit := time.Now().Add(settleTimeout); ; {
		list, err := k.run(ctx, f.name, "get", f.compare, "-o", "json", "--show-managed-fields")
		if err != nil {
			return nil, err
		}
		objects, err := readObjects(list)
		if err != nil || end == nil || len(differences(objects, end)) == 0 || time.Now().After(limit) {
			return objects, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// runStep runs a step that is one of those that readFlows describes.
func (f flow) runStep(ctx context.Context, k *kubectl, logs logs, step string) error {
	word, rest, _ := strings.Cut(step, " ")
	switch word {
	case "!":
		_, err := k.run(ctx, f.name, strings.Fields(rest)...)
		switch {
		case err == nil:
			return fmt.Errorf("kubectl %s: the server did not refuse it", rest)
		case !strings.Contains(err.Error(), "Error from server"):
			return fmt.Errorf("it was not the server that refused it: %w", err)
		}
		return nil
	case "placed":
		return k.checkPlacement(ctx, f.name, rest)
	case "logged":
		return logs.await(ctx, rest)
	default:
		_, err := k.run(ctx, f.name, strings.Fields(step)...)
		return err
	}
}
