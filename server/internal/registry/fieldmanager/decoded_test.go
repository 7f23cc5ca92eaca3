package fieldmanager

import (
	"fmt"
	"strings"
	"testing"
)

// TestDecodedSetsAreBounded and are right, remembered or not.
func TestDecodedSetsAreBounded(t *testing.T) {
	var d decodedSets
	for i := range 3 * maxDecoded {
		raw := fmt.Sprintf(`{"f:data":{"f:k%d":{}}}`, i)
		for range 2 {
			set, err := d.of([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			if back, err := set.ToJSON(); err != nil || string(back) != raw {
				t.Fatalf("%s became %s, %v", raw, back, err)
			}
		}
		if len(d.sets) > maxDecoded {
			t.Fatalf("%d sets are remembered, the limit is %d", len(d.sets), maxDecoded)
		}
	}
	large := `{"f:data":{"f:` + strings.Repeat("k", maxDecodedBytes) + `":{}}}`
	if set, err := d.of([]byte(large)); err != nil || set.Empty() {
		t.Errorf("%v, %v", set, err)
	}
	if _, ok := d.sets[large]; ok {
		t.Error("what is large is remembered")
	}
	if _, err := d.of([]byte(`{"f:`)); err == nil {
		t.Error("half a set was decoded")
	}
}

// FuzzDecodedSets decodes what a store may hold.
func FuzzDecodedSets(f *testing.F) {
	for _, seed := range []string{`{}`, `{".":{}}`, `{"f:a":{"k:{\"b\":1}":{},"v:\"x\"":{},"i:3":{}}}`, `{"k:{}":{}}`, `[]`, `{"f:a":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d decodedSets
		set, err := d.of(raw)
		if err != nil {
			return
		}
		text, err := set.ToJSON()
		if err != nil {
			t.Fatalf("%q was decoded and cannot be encoded: %v", raw, err)
		}
		again, err := d.of(text)
		if err != nil || !again.Equals(set) {
			t.Errorf("%q became %q, which is %v, %v", raw, text, again, err)
		}
	})
}
