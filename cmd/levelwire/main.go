package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the zones of CronJobs, on machines that have none

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/runtimelimits"
	"github.com/levelwire/levelwire/server"
)

// Exit codes: 1 for what failed while running, 2 for a command line that
// cannot be understood, 3 for a verification that failed nowhere and could not
// decide everything.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitNotDecided
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills the process at once.
	context.AfterFunc(ctx, stop)
	runtimelimits.ObeyMemoryLimit()
	runtimelimits.BoundGarbage() // for as long as the process lives
	runtimelimits.SpareProcs()   // likewise
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
	fmt.Fprintf(stderr, "levelwire: %s\n", cli.OneLine(err))
	var wrong cli.UsageError
	var config *server.ConfigError
	if errors.As(err, &wrong) || errors.As(err, &config) {
		return exitUsage
	}
	var slow notDecidedError
	if errors.As(err, &slow) {
		return exitNotDecided
	}
	return exitFailed
}
