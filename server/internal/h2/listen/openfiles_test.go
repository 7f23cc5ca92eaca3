package listen

import (
	"math"
	"testing"
)

func TestFilesAreReserved(t *testing.T) {
	for files, want := range map[uint64]int{0: 0, 1: 1, 64: 48, 1024: 768, 65536: 64512, 1 << 20: 1<<20 - 1024, math.MaxUint64: 0} {
		if got := limitOf(files); got != want {
			t.Errorf("of %d files, %d are for connections, want %d", files, got, want)
		}
	}
	if got, want := DefaultLimit(), limitOf(openFilesLimit()); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}
