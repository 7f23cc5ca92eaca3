package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// Logging are the flags of commands that log.
type Logging struct {
	Level  string
	Format string
}

// Register adds the flags to a command; level is the default.
func (l *Logging) Register(cmd *cobra.Command, level string) {
	cmd.Flags().StringVar(&l.Level, "log-level", level, "least important messages to log: debug, info, warn or error")
	cmd.Flags().StringVar(&l.Format, "log-format", "text", "how to log: text or json")
}

// Logger returns what the flags ask for. It also receives what the Kubernetes libraries log.
func (l *Logging) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, Usage(fmt.Errorf("--log-level %q is unknown: it is debug, info, warn or error", l.Level))
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch l.Format {
	case "text":
		handler = slog.NewTextHandler(w, opts)
	case "json":
		handler = slog.NewJSONHandler(w, opts)
	default:
		return nil, Usage(fmt.Errorf("--log-format %q is unknown: it is text or json", l.Format))
	}
	kubernetesLog.Store(&handler)
	return slog.New(handler), nil
}
