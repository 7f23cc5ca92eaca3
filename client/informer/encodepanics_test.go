package informer_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// fuse is an object with a member that encodes itself, and panics if it is blown.
type fuse struct {
	lamp
	State state `json:"state"`
}

func (f *fuse) DeepCopyObject() runtime.Object { c := *f; return &c }

type state struct{ blown bool }

func (s state) MarshalJSON() ([]byte, error) {
	if s.blown {
		panic("the fuse is blown")
	}
	return []byte(`{}`), nil
}

// An object whose own MarshalJSON panics is kept as it is in a store of encoded objects.
func TestEncodingThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf[*fuse]{&fuse{*lampAt("1", "40"), state{blown: true}}, make(chan *fuse)}
		i := informer.New[*fuse]("fuses", source, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
		if err := i.CompressObjects(); err != nil {
			t.Fatal(err)
		}
		stop := start(t, i)
		for n, want := range []state{{blown: true}, {}, {blown: true}} {
			if n > 0 {
				source.events <- &fuse{*lampAt([]string{"", "2", "3"}[n], "40"), want}
				synctest.Wait()
			}
			if got, ok := i.Lister().Get("ns", "a"); !ok || got.State != want {
				t.Errorf("state %d: got %v, %v", n, got, ok)
			}
			if size := i.EstimateBytes(); (size > 0) == want.blown {
				t.Errorf("state %d takes %d bytes", n, size)
			}
		}
		stop()
	})
}
