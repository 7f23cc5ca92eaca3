package resourcequota

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// TestPanicRefuses: a claim that was to be decided by a request that panics is refused,
// and the next claim finds no batch in its way.
func TestPanicRefuses(t *testing.T) {
	p, deciding, waiting := New(nil, nil), &claim{}, &claim{}
	if !p.batches.enter("ns", deciding) || p.batches.enter("ns", waiting) {
		t.Fatal("the first claim does not decide both")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a registry of nothing does not panic")
			}
		}()
		p.decideNext("ns", registry.Registry{}, deciding)
	}()
	<-waiting.turn
	if !waiting.settled || waiting.err == nil {
		t.Errorf("settled %v with the error %v, want it to be refused", waiting.settled, waiting.err)
	}
	if len(p.batches.namespaces) != 0 {
		t.Error("the batch is kept")
	}
}
