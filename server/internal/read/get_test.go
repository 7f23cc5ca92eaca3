package read

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/server/internal/status"
)

func TestGetGrid(t *testing.T) { synctest.Test(t, testGetGrid) }

func testGetGrid(t *testing.T) {
	f := newFixture(t)
	first, _, third := f.seed()
	for _, tt := range []struct {
		namespace, name, version string
		code                     int32 // of the error; 0: none
	}{
		{"a", "one", "", 0},
		{"a", "one", "0", 0},
		{"a", "one", fmt.Sprint(third), 0},
		{"a", "one", fmt.Sprint(third + 1000), 504},
		{"a", "one", "x", 400},
		{"a", "one", "-1", 400},
		{"a", "three", "0", 404},
		{"a", "three", "", 404},
		{"nowhere", "one", "", 404},
	} {
		object, err := f.reader.Get(t.Context(), Scope{Resource: f.pods, Namespace: tt.namespace, Name: tt.name}, tt.version)
		switch {
		case tt.code != 0:
			if got := status.Of(err); err == nil || got.Code != tt.code {
				t.Errorf("%s/%s at %q: %v, want %d", tt.namespace, tt.name, tt.version, err, tt.code)
			}
		case err != nil || object.Revision != first:
			t.Errorf("%s/%s at %q: %+v, %v", tt.namespace, tt.name, tt.version, object, err)
		}
	}
}
