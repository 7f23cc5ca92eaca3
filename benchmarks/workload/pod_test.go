package workload

import (
	"encoding/json"
	"testing"
)

// TestSizes holds the pods to the sizes that reports name.
func TestSizes(t *testing.T) {
	small, err := json.Marshal(Small(123_456))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(small); n < 2850 || n > 2980 {
		t.Errorf("a small pod has %d bytes of JSON", n)
	}
	if n := Small(123_456).Size(); n < 1430 || n > 1570 {
		t.Errorf("a small pod has %d bytes of protobuf", n)
	}
	whole, err := json.Marshal(Pod(123_456, true))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(whole); n < 4300 || n > 4500 {
		t.Errorf("a pod has %d bytes of JSON", n)
	}
	if n := Pod(123_456, true).Size(); n < 2500 || n > 2700 {
		t.Errorf("a pod has %d bytes of protobuf", n)
	}
}
