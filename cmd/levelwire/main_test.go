package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// asCommand in the environment makes the test binary be levelwire, so that
// tests can start it as processes of their own without a build.
const asCommand = "LEVELWIRE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	// etcd leaves these behind; they belong to files that are closed.
	goleak.VerifyTestMain(m,
		// What deletes old audit logs lives as long as the process.
		goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/wal.(*filePipeline).run"))
}

// result is what a command line came to.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs the command in this process, to its end.
func invoke(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, append([]string{"levelwire"}, args...), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}
