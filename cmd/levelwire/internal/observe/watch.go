package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
)

// watchFlags are the flags of levelwire watch.
type watchFlags struct {
	cli.ClusterFlags
	namespace     string
	allNamespaces bool
	options       metav1.ListOptions
	initial       bool
	output        string
}

// NewWatch returns the command that shows what a watch sends.
func NewWatch() *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "watch KIND",
		Short: "Print what a watch sends: events, versions, bookmarks, interruptions",
		Long: `Watch a resource of any Kubernetes and print each event in a line:

  time      type      version      +versions  latency  object
  10:02:11  MODIFIED  48219        +37        ~0.4s    default/web-0

+versions is how far the version is from the one of the line before: changes of
other resources, or of objects that are not selected. The latency is the time
since the newest entry of the object's managedFields, which servers note in
whole seconds; there is none for an object that has none, or whose event was
made by a deletion. Bookmarks, ends and resumes are lines of their own. If the
server has no history to resume from, there is a line that says so, and the
watch goes on from now: events in between are missing.

It begins now, or with the present state (--initial), or after a version that
the server still has (--since). Colours are for terminals, unless NO_COLOR is
set.`,
		Example: `  levelwire watch pods -A
  levelwire watch deploy -n shop -l app=cart --initial
  levelwire watch events -A --since 48182 -o json`,
		Args: oneArgument("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.watch(cmd, args[0]) },
	}
	flags.ClusterFlags.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&flags.namespace, "namespace", "n", "", "namespace (default: that of the kubeconfig's context)")
	f.BoolVarP(&flags.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	f.StringVarP(&flags.options.LabelSelector, "selector", "l", "", "label selector")
	f.StringVar(&flags.options.FieldSelector, "field-selector", "", "field selector")
	f.StringVar(&flags.options.ResourceVersion, "since", "", "version after which to begin (default: now)")
	f.BoolVar(&flags.initial, "initial", false, "begin with the present state")
	f.StringVarP(&flags.output, "output", "o", "table", "what to print: table, or json: a line for each event, with the object")
	return cmd
}

// oneArgument expects one argument.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usage(fmt.Errorf("%d arguments instead of one, the %s (see '%s --help')", len(args), name, cmd.CommandPath()))
		}
		return nil
	}
}

func (f *watchFlags) watch(cmd *cobra.Command, kind string) error {
	switch {
	case f.output != "table" && f.output != "json":
		return cli.Usage(fmt.Errorf("--output %q is unknown: it is table or json", f.output))
	case f.initial && f.options.ResourceVersion != "":
		return cli.Usage(errors.New("--initial and --since exclude each other"))
	}
	c, namespace, err := f.Client()
	if err != nil {
		return err
	}
	resource, err := f.resource(cmd.Context(), c, kind, namespace)
	if err != nil {
		return err
	}
	p := &eventPrinter{out: cmd.OutOrStdout(), json: f.output == "json", colours: cli.ColoursFor(cmd.OutOrStdout())}
	if !f.initial && f.options.ResourceVersion == "" {
		opts := f.options
		opts.Limit = 1
		list, err := resource.List(cmd.Context(), opts)
		if err != nil {
			return err
		}
		f.options.ResourceVersion = list.ResourceVersion
	}
	f.options.AllowWatchBookmarks = true
	return followEvents(cmd.Context(), resource, f.options, p)
}

// resource finds the resource of a name, in the wanted namespaces.
func (f *watchFlags) resource(ctx context.Context, c *client.Client, kind, namespace string) (client.Resource[*unstructured.Unstructured], error) {
	found, err := discovery.NewMapper(c, discovery.Options{}).ByName(ctx, kind)
	if meta.IsNoMatchError(err) {
		err = fmt.Errorf("the server has no resource %q ('kubectl api-resources' lists those that it has)", kind)
	}
	if err != nil {
		return client.Resource[*unstructured.Unstructured]{}, err
	}
	resource := client.DynamicMapping(c, found.Mapping)
	if found.Mapping.Scope != "Namespaced" || f.allNamespaces {
		return resource, nil
	}
	if f.namespace != "" {
		namespace = f.namespace
	}
	return resource.Namespace(namespace), nil
}

// watchRetry is how long a watch that failed is left alone.
const watchRetry = time.Second

// followEvents prints events until ctx ends, and resumes watches that end.
func followEvents(ctx context.Context, resource client.Resource[*unstructured.Unstructured], opts metav1.ListOptions, p *eventPrinter) error {
	p.version = opts.ResourceVersion
	p.note("opened", opts.ResourceVersion, "")
	for opened := false; ; {
		err := p.stream(ctx, resource, opts, &opened)
		switch {
		case p.err != nil:
			return p.err
		case ctx.Err() != nil:
			return nil
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			p.note("expired", p.version, "the server has no history after this version: events are missing until the next line")
			list, err := resource.List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector})
			if err != nil {
				return err
			}
			p.version = list.ResourceVersion
		case !opened: // the first one has to work
			return err
		case errors.Is(err, io.EOF):
			p.note("resumed", p.version, "the server ended the watch")
		default:
			p.note("resumed", p.version, err.Error())
			timer := time.NewTimer(watchRetry)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
		opts.ResourceVersion = p.version
	}
}

// eventPrinter prints the lines of levelwire watch.
type eventPrinter struct {
	out     io.Writer
	json    bool
	colours cli.Colours
	version string // of the last event or bookmark
	err     error  // of out
}

// stream prints the events of one watch, and returns why it ended.
func (p *eventPrinter) stream(ctx context.Context, resource client.Resource[*unstructured.Unstructured], opts metav1.ListOptions, opened *bool) error {
	w, err := resource.Watch(ctx, opts)
	if err != nil {
		return err
	}
	defer w.Close()
	*opened = true
	for p.err == nil {
		e, err := w.Next()
		if err != nil {
			return err
		}
		p.event(string(e.Type), e.Object, time.Now())
	}
	return p.err
}

// eventLine is a line of -o json.
type eventLine struct {
	Time            time.Time `json:"time"`
	Type            string    `json:"type"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Versions is how far it is from the line before.
	Versions int64 `json:"versions,omitempty"`
	// LatencySeconds is the time since the newest managed field was written, whose time is
	// in whole seconds.
	LatencySeconds *float64                   `json:"latencySeconds,omitempty"`
	Message        string                     `json:"message,omitempty"`
	Object         *unstructured.Unstructured `json:"object,omitempty"`
}

func (p *eventPrinter) event(typ string, o *unstructured.Unstructured, now time.Time) {
	line := eventLine{Time: now, Type: typ, ResourceVersion: o.GetResourceVersion(), Object: o}
	line.Versions = distance(p.version, line.ResourceVersion)
	p.version = line.ResourceVersion
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	if typ != "DELETED" && typ != "BOOKMARK" {
		line.LatencySeconds = latency(o, now)
	}
	p.print(line, name)
}

// note prints a line that is no event.
func (p *eventPrinter) note(what, version, message string) {
	p.print(eventLine{Time: time.Now(), Type: what, ResourceVersion: version, Message: message}, message)
}

func (p *eventPrinter) print(line eventLine, text string) {
	if p.err != nil {
		return
	}
	if p.json {
		p.err = json.NewEncoder(p.out).Encode(line)
		return
	}
	versions, late := "", ""
	if line.Versions != 0 {
		versions = fmt.Sprintf("%+d", line.Versions)
	}
	if line.LatencySeconds != nil {
		late = fmt.Sprintf("~%.1fs", *line.LatencySeconds)
	}
	colour := cli.ColourOf(line.Type)
	_, p.err = fmt.Fprintf(p.out, "%s  %s  %-12s  %s  %-8s %s\n", p.colours.In(cli.Dim, line.Time.Format("15:04:05.000")), p.colours.In(colour, fmt.Sprintf("%-8s", line.Type)),
		cli.Printable(line.ResourceVersion), p.colours.In(cli.Dim, fmt.Sprintf("%-8s", versions)), late, cli.Printable(text))
}

// distance is the difference of two versions; 0 if they are no numbers.
func distance(before, after string) int64 {
	a, err := strconv.ParseInt(before, 10, 64)
	if err != nil || a == 0 {
		return 0
	}
	b, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return 0
	}
	return b - a
}

// latency is the time since the newest managed field of an object was written, if that is
// not long ago: an older one says nothing about this event.
func latency(o *unstructured.Unstructured, now time.Time) *float64 {
	var newest time.Time
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	const longAgo = time.Minute
	age := now.Sub(newest)
	if newest.IsZero() || age > longAgo || age < -time.Second {
		return nil
	}
	seconds := max(age.Seconds(), 0)
	return &seconds
}
