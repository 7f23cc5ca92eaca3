package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stepTimeout is how long kubectl may take for one step; it waits for what controllers do.
const stepTimeout = 5 * time.Minute

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
// line is a command line of kubectl, words separated by spaces; a file that it names is in the folder.
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

// run runs a flow on a cluster, and returns the objects at its end.
func (f flow) run(ctx context.Context, c *cluster, files string) ([]object, error) {
	if _, err := c.kubectlIn(ctx, files, "", "create", "namespace", f.name); err != nil {
		return nil, err
	}
	for _, step := range f.steps {
		if _, err := c.kubectlIn(ctx, files, f.name, strings.Fields(step)...); err != nil {
			return nil, err
		}
	}
	list, err := c.kubectlIn(ctx, files, f.name, "get", f.compare, "-o", "json", "--show-managed-fields")
	if err != nil {
		return nil, err
	}
	return readObjects(list)
}

// kubectlIn runs kubectl in a folder, with a namespace if there is one, and returns what it prints.
func (c *cluster) kubectlIn(ctx context.Context, folder, namespace string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if namespace != "" {
		args = append([]string{"--namespace", namespace}, args...)
	}
	cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--kubeconfig", c.admin, "--cache-dir", filepath.Join(c.folder, "kubectl")}, args...)...)
	cmd.Dir = folder
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
