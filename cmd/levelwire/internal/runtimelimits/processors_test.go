package runtimelimits

import (
	"runtime"
	"testing"

	"github.com/levelwire/levelwire/internal/processors"
)

func TestSmallMachinesHaveProcessorsToSpare(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		byDefault, processors int
		want                  int
	}{
		{"one", 1, 1, leastProcs},
		{"two", 2, 2, leastProcs},
		{"as many as needed", leastProcs, leastProcs, leastProcs},
		{"many", 64, 64, 64},
		{"a container's limit on a large machine", 2, 64, 2},
		{"a container's limit on a small machine", 2, 4, 2},
	} {
		if got := procs(tt.byDefault, tt.processors); got != tt.want {
			t.Errorf("%s: GOMAXPROCS is %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestSpareProcs(t *testing.T) {
	t.Cleanup(runtime.SetDefaultGOMAXPROCS)
	runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	t.Run("not if the user set GOMAXPROCS", func(t *testing.T) {
		t.Setenv("GOMAXPROCS", "1")
		defer SpareProcs()()
		defer processors.Computing()()
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("GOMAXPROCS is %d", got)
		}
	})
	t.Setenv("GOMAXPROCS", "")
	defer SpareProcs()()
	if got := runtime.GOMAXPROCS(0); got != usual {
		t.Errorf("nothing computes: GOMAXPROCS is %d", got)
	}
	defer processors.Computing()()
	if got, want := runtime.GOMAXPROCS(0), procs(usual, runtime.NumCPU()); got != want {
		t.Errorf("a request computes: GOMAXPROCS is %d, want %d", got, want)
	}
}
