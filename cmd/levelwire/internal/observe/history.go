package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// historyFlags are the flags of levelwire history.
type historyFlags struct {
	watchFlags
	limit         int
	managedFields bool
}

// NewHistory returns the command that shows the versions of an object.
func NewHistory() *cobra.Command {
	var flags historyFlags
	cmd := &cobra.Command{
		Use:   "history KIND NAME",
		Short: "Show the versions of an object, and what each changed",
		Long: `Show the versions of an object that the server still has, oldest first: when
each was made, and which fields it added (+), removed (-) or changed. A
levelwire server keeps the latest changes of each resource
(docs/operators/history.md). Your user must be allowed to get and to watch it.

Kubernetes itself keeps no history that can be asked for. There, record the
cluster with 'levelwire record' and ask the replay.`,
		Example: `  levelwire history pod web-0 -n shop
  levelwire history node node-1 --limit 5
  levelwire history deploy web -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usage(fmt.Errorf("%d arguments instead of two, KIND and NAME (see '%s --help')", len(args), cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.history(cmd, args[0], args[1]) },
	}
	flags.ClusterFlags.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&flags.namespace, "namespace", "n", "", "namespace (default: that of the kubeconfig's context)")
	f.IntVar(&flags.limit, "limit", 50, "how many of the latest versions to show, at most 1000")
	f.BoolVar(&flags.managedFields, "show-managed-fields", false, "show changes of managedFields, too")
	f.StringVarP(&flags.output, "output", "o", "table", "what to print: table, or json: the versions with their objects")
	return cmd
}

func (f *historyFlags) history(cmd *cobra.Command, kind, name string) error {
	switch {
	case f.output != "table" && f.output != "json":
		return cli.Usage(fmt.Errorf("--output %q is unknown: it is table or json", f.output))
	case f.limit < 1 || f.limit > 1000:
		return cli.Usage(fmt.Errorf("--limit %d is not between 1 and 1000", f.limit))
	}
	c, namespace, err := f.Client()
	if err != nil {
		return err
	}
	resource, err := f.resource(cmd.Context(), c, kind, namespace)
	if err != nil {
		return err
	}
	at, err := resource.URL(name)
	if err != nil {
		return err
	}
	body, err := getDebug(cmd.Context(), c, debugapi.HistoryPath+at.EscapedPath()+"?limit="+strconv.Itoa(f.limit))
	if err != nil {
		return err
	}
	if f.output == "json" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", body)
		return err
	}
	var history debugapi.History
	if err := json.Unmarshal(body, &history); err != nil {
		return fmt.Errorf("the server's history cannot be read: %w", err)
	}
	return f.print(cmd.OutOrStdout(), &history)
}

// getDebug asks a path of the debug API.
func getDebug(ctx context.Context, c *client.Client, path string) ([]byte, error) {
	resp, err := c.Raw(ctx, client.RawRequest{Path: path})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // It is only read.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return body, nil
	case resp.StatusCode == http.StatusNotFound && !hasDebugAPI(ctx, c):
		return nil, errNoHistory
	}
	return nil, client.ResponseError(resp, body)
}

// hasDebugAPI reports whether a server may have the debug API.
func hasDebugAPI(ctx context.Context, c *client.Client) bool {
	resp, err := c.Raw(ctx, client.RawRequest{Path: debugapi.LogsPath})
	if err != nil {
		return true // it did not say that it has none
	}
	_ = resp.Body.Close()
	return resp.StatusCode != http.StatusNotFound
}

var errNoHistory = errors.New("the server keeps no history that can be asked for: Kubernetes has none; record the cluster with 'levelwire record', and ask 'levelwire replay'")

// print shows the versions, oldest first.
func (f *historyFlags) print(out io.Writer, h *debugapi.History) error {
	colours := cli.ColoursFor(out)
	if h.Truncated {
		fmt.Fprintf(out, "older versions are left out: see --limit\n")
	}
	if len(h.Items) == 0 {
		fmt.Fprintf(out, "no version is known since %d\n", h.Oldest)
	}
	var before map[string]any
	for i := range h.Items {
		v := &h.Items[i]
		when, typ := "time unknown", v.Type
		if v.Time != nil {
			when = v.Time.Local().Format("2006-01-02 15:04:05.000")
		}
		if typ == "" {
			typ = "BEFORE"
		}
		fmt.Fprintf(out, "%s  %s  %s\n", colours.In(cli.Bold, strconv.FormatInt(v.Revision, 10)), colours.In(cli.Dim, when), colours.In(cli.ColourOf(typ), typ))
		if len(v.Object) == 0 {
			before = nil
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(v.Object, &object); err != nil {
			return fmt.Errorf("version %d cannot be read: %w", v.Revision, err)
		}
		f.clean(object)
		if before != nil {
			for _, c := range differences(before, object) {
				fmt.Fprintf(out, "  %s\n", colours.In(c.colour(), cli.Printable(c.String())))
			}
		}
		before = object
	}
	return nil
}

// clean removes what changes with each version.
func (f *historyFlags) clean(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	if !f.managedFields {
		delete(metadata, "managedFields")
	}
}

// fieldDifference is one field that differs: nil is one that is not there.
type fieldDifference struct {
	path          string
	before, after any
}

func (d fieldDifference) colour() string {
	switch {
	case d.before == nil:
		return cli.Green
	case d.after == nil:
		return cli.Red
	}
	return cli.Yellow
}

func (d fieldDifference) String() string {
	text := func(v any) string {
		data, _ := json.Marshal(v)
		const most = 200
		if len(data) > most {
			return strings.ToValidUTF8(string(data[:most]), "") + "..."
		}
		return string(data)
	}
	switch {
	case d.before == nil:
		return "+ " + d.path + ": " + text(d.after)
	case d.after == nil:
		return "- " + d.path + ": " + text(d.before)
	}
	return "  " + d.path + ": " + text(d.before) + " -> " + text(d.after)
}

// differences lists the fields in which two objects differ, by path.
func differences(before, after map[string]any) (list []fieldDifference) {
	compare("", before, after, &list)
	slices.SortStableFunc(list, func(a, b fieldDifference) int { return strings.Compare(a.path, b.path) })
	return list
}

func compare(path string, before, after any, list *[]fieldDifference) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			compareMaps(path, b, a, list)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			compareMaps(path, elements(b), elements(a), list)
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		*list = append(*list, fieldDifference{path, before, after})
	}
}

func compareMaps(path string, before, after map[string]any, list *[]fieldDifference) {
	for key, b := range before {
		compare(join(path, key), b, after[key], list)
	}
	for key, a := range after {
		if _, ok := before[key]; !ok {
			compare(join(path, key), nil, a, list)
		}
	}
}

func join(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// elements names the elements of a list by what merges them, if all have that, or by
// their place.
func elements(list []any) map[string]any {
	for _, field := range []string{"name", "type", "uid", "key", "ip"} {
		named := make(map[string]any, len(list))
		for _, element := range list {
			if m, ok := element.(map[string]any); ok {
				if name, ok := m[field].(string); ok {
					named["["+name+"]"] = element
				}
			}
		}
		if len(named) == len(list) && len(list) > 0 {
			return named
		}
	}
	numbered := make(map[string]any, len(list))
	for i, element := range list {
		numbered["["+strconv.Itoa(i)+"]"] = element
	}
	return numbered
}
