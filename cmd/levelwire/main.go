package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // the zones of CronJobs, on machines that have none

	"github.com/levelwire/levelwire/server"
)

// Exit codes: 1 for what failed while running, 2 for a command line that
// cannot be understood.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills the process at once.
	context.AfterFunc(ctx, stop)
	boundGarbage() // for as long as the process lives
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is the whole program with its surroundings as arguments; the first of
// args is its name, which may make it another command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := commandOf(args[0])
	cmd.SetArgs(args[1:])
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := checkCommand(cmd, args[1:])
	if err == nil {
		err = cmd.ExecuteContext(ctx)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "levelwire: %s\n", oneLine(err))
	var usage usageError
	var config *server.ConfigError
	if errors.As(err, &usage) || errors.As(err, &config) {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// oneLine joins the lines that joined errors have.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
