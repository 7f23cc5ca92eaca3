package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// topFlags are the flags of levelwire top.
type topFlags struct {
	cli.ClusterFlags
	once     bool
	interval time.Duration
	rows     int
	// informers are where programs publish theirs.
	informers []string
}

// NewTop returns the command that shows what an API server is doing.
func NewTop() *cobra.Command {
	var flags topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what an API server is doing: requests, watches, logs, memory",
		Long: `Show an API server at work, anew every two seconds until Ctrl-C: which requests
take its time, who watches what and how far behind, and what each resource's
objects and event log take.

A levelwire server says all that (docs/users/top.md). Of any other Kubernetes
it shows what its metrics have: requests, watches by resource, objects,
processor and memory. Reading needs the right to get /metrics, and for a
levelwire server /debug/listwatch/*.`,
		Example: `  levelwire top
  levelwire top --once
  levelwire top --kubeconfig ~/.kube/config --interval 5s`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.top(cmd) },
	}
	flags.ClusterFlags.Register(cmd)
	cmd.Flags().BoolVar(&flags.once, "once", false, "print once, with totals since the server's start, and end: for scripts")
	cmd.Flags().DurationVar(&flags.interval, "interval", 2*time.Second, "time between two looks")
	cmd.Flags().IntVar(&flags.rows, "rows", 8, "rows of each table")
	cmd.Flags().StringSliceVar(&flags.informers, "informers", nil, "URLs at which programs publish their informers by package client/debug: http://127.0.0.1:8080/debug/informers")
	return cmd
}

func (f *topFlags) top(cmd *cobra.Command) error {
	if f.interval < 100*time.Millisecond || f.rows < 1 {
		return cli.Usage(fmt.Errorf("--interval %s and --rows %d: at least 100ms and 1", f.interval, f.rows))
	}
	c, _, err := f.Client()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	view := topView{rows: f.rows, colours: cli.ColoursFor(out)}
	if f.once {
		sample, err := takeSample(cmd.Context(), c)
		if err != nil {
			return err
		}
		sample.readInformers(cmd.Context(), f.informers)
		_, err = io.WriteString(out, view.draw(nil, sample))
		return err
	}
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	var before *topSample
	for {
		sample, err := takeSample(cmd.Context(), c)
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case err != nil && before == nil:
			return err
		case err != nil: // the server may be back soon
			_, err = fmt.Fprintf(out, "\r%s\x1b[K", view.colours.In(cli.Red, cli.OneLine(err)))
		default:
			sample.readInformers(cmd.Context(), f.informers)
			// To the corner, each line to its end, and the rest of the screen.
			_, err = io.WriteString(out, "\x1b[H"+view.draw(before, sample)+"\x1b[J")
			before = sample
		}
		if err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-cmd.Context().Done():
			return nil
		}
	}
}

// topSample is what a server said at a moment.
type topSample struct {
	host    string
	at      time.Time
	metrics metricSet
	// logs and watchers are nil if the server is not levelwire.
	logs     *debugapi.Logs
	watchers *debugapi.Watchers
	programs []program
}

// takeSample asks a server.
func takeSample(ctx context.Context, c *client.Client) (*topSample, error) {
	s := &topSample{host: c.Host(), at: time.Now()}
	resp, err := c.Raw(ctx, client.RawRequest{Path: "/metrics"})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // It is only read.
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		return nil, errors.Join(client.ResponseError(resp, body), err)
	}
	if s.metrics, err = parseMetrics(resp.Body); err != nil {
		return nil, fmt.Errorf("/metrics: %w", err)
	}
	if !s.metrics.has("levelwire_cache_objects") {
		return s, nil
	}
	for path, into := range map[string]any{debugapi.LogsPath: &s.logs, debugapi.WatchersPath + "?limit=5000": &s.watchers} {
		body, err := getDebug(ctx, c, path)
		if err == nil {
			err = json.Unmarshal(body, into)
		}
		if err != nil && !errors.Is(err, errNoHistory) {
			return nil, err
		}
	}
	return s, nil
}
