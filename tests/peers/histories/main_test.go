package histories

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

var (
	duration = flag.Duration("histories.duration", 0, "how long to play scenarios, with one seed after the other; 0: each once")
	seed     = flag.Uint64("histories.seed", 1, "what decides on the writes and faults; two runs with one seed are alike, but not the same")
)

// testTimeout is how long anything may take on a machine that has much else to do.
const testTimeout = 2 * time.Minute

// lifetime is how long a scenario may take there, with everything in it.
const lifetime = 8 * time.Minute

func TestMain(m *testing.M) {
	for variable, run := range map[string]func(text string) error{hostSettings: runHost, memberSettings: runMember} {
		if text := os.Getenv(variable); text != "" {
			if err := run(text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	flag.Parse()
	// Most of their time scenarios wait for clients that wait before they come
	// back, so more are played side by side than there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The upstream libraries' chatter stays out of the tests' output.
	klog.SetLogger(klog.Logger{})
	log.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}
