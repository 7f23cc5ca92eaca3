package delta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// objectOf returns the JSON of an object of about a size, of which little depends on the
// revision.
func objectOf(revision, size int) []byte {
	random := rand.New(rand.NewPCG(1, 1))
	out := fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":"a"},"spec":{`, revision)
	for len(out) < size {
		out = fmt.Appendf(out, `"variable-%d":"%x",`, random.IntN(1000), random.Uint64())
	}
	return fmt.Appendf(out, `"last":true},"status":{"heartbeats":%d}}`, revision*7)
}

func encode(t testing.TB, object, base Reference, content, baseContent []byte) []byte {
	t.Helper()
	out, err := Encode(Head(object, base, "default", "a"), baseContent, content)
	if err != nil {
		t.Fatal(err)
	}
	if !Is(out) || !json.Valid(out) {
		t.Fatalf("%s is not a delta", out)
	}
	return out
}

func TestApply(t *testing.T) {
	for _, size := range []int{0, 1000, 50_000, 100_000, 200_000, 500_000, 1_400_000, 3_000_000} {
		base, object := objectOf(7, size), objectOf(8, size)
		before, after := Reference{"default/a", 7}, Reference{"default/a", 8}
		based := 800
		if size > 1_000_000 { // of which a fast level finds less
			based = size / 4
		}
		for name, test := range map[string]struct {
			base Reference
			json []byte
			max  int
		}{"whole": {max: len(object)/2 + 500}, "of a base": {before, base, based}} {
			out := encode(t, after, test.base, object, test.json)
			if len(out) > test.max {
				t.Errorf("%s: %d bytes, for %d", name, len(out), len(object))
			}
			d, err := Parse(out)
			if err != nil || d.Base != test.base {
				t.Fatalf("%s: %v, %v", name, d.Base, err)
			}
			got, err := d.Apply(test.json)
			if err != nil || !bytes.Equal(got, object) {
				t.Fatalf("%s: %d bytes: %v", name, len(got), err)
			}
		}
	}
}

// TestWrongBase gives an error, and never another object.
func TestWrongBase(t *testing.T) {
	base := objectOf(7, 2000)
	d, err := Parse(encode(t, Reference{"default/a", 8}, Reference{"default/a", 7}, objectOf(8, 2000), base))
	if err != nil {
		t.Fatal(err)
	}
	shifted := bytes.Replace(base, []byte(`"variable-`), []byte(`"varia-ble`), 1)
	for name, wrong := range map[string][]byte{"none": nil, "another": objectOf(9, 3000), "shorter": base[:100], "changed": shifted} {
		if got, err := d.Apply(wrong); !errors.Is(err, ErrBase) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestLargeObject: a delta of few bytes does not make a receiver take much memory.
func TestLargeObject(t *testing.T) {
	for size, fits := range map[int]bool{MaxObjectBytes - 1000: true, MaxObjectBytes + 1: false} {
		object := bytes.Repeat([]byte("x"), size)
		d, err := Parse(encode(t, Reference{"default/a", 8}, Reference{}, object, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Apply(nil); (err == nil) != fits {
			t.Errorf("%d bytes from %d: %v", size, len(d.Payload), err)
		}
	}
}

func TestRecent(t *testing.T) {
	var r Recent
	if ref, content := r.Like(nil); ref != (Reference{}) || content != nil {
		t.Fatal("an object like another, where there is none")
	}
	of := func(app string) resource.Labels { return resource.Labels{{Key: "app", Value: app}} }
	for i := range recentObjects + 2 {
		r.Add(Reference{fmt.Sprint("a/", i), int64(i + 1)}, fmt.Append(nil, i), of(fmt.Sprint("app-", i%3)))
	}
	r.Add(Reference{"a/large", 100}, make([]byte, maxRecentBytes+1), nil)
	if r.Find(Reference{"a/1", 2}) != nil || r.Find(Reference{"a/large", 100}) != nil || string(r.Find(Reference{"a/2", 3})) != "2" {
		t.Error("not the last objects are remembered")
	}
	if ref, _ := r.Like(of("app-1")); ref.Key != "a/7" {
		t.Errorf("like app-1 is %s", ref.Key)
	}
	if ref, _ := r.Like(nil); ref.Key != "a/9" {
		t.Errorf("the last one is %s", ref.Key)
	}
}

// FuzzApply: nothing that is received makes a receiver panic, or take more memory than it
// bounds, and what it takes for an object has the digest.
func FuzzApply(f *testing.F) {
	base := objectOf(7, 300)
	good := encode(f, Reference{"default/a", 8}, Reference{"default/a", 7}, objectOf(8, 300), base)
	f.Add(good, base)
	f.Add(good, []byte("x"))
	f.Add([]byte(prefix+`8"},"zstd":"KLUv/aQAAAAEAQAA"}`), []byte{})
	f.Add([]byte(prefix), []byte{})
	f.Fuzz(func(t *testing.T, received, base []byte) {
		d, err := Parse(received)
		if err != nil {
			return
		}
		if object, err := d.Apply(base); err == nil && digestOf(object) != d.Digest {
			t.Errorf("%q from %q", object, base)
		}
	})
}

// BenchmarkEncode is of a change in an object of 50 kB.
func BenchmarkEncode(b *testing.B) {
	base, object := objectOf(7, 50_000), objectOf(8, 50_000)
	head := Head(Reference{"default/a", 8}, Reference{"default/a", 7}, "default", "a")
	b.ReportAllocs()
	for range b.N {
		if _, err := Encode(head, base, object); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply is the same for the receiver.
func BenchmarkApply(b *testing.B) {
	base, object := objectOf(7, 50_000), objectOf(8, 50_000)
	out := encode(b, Reference{"default/a", 8}, Reference{"default/a", 7}, object, base)
	b.ReportAllocs()
	for range b.N {
		d, err := Parse(out)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.Apply(base); err != nil {
			b.Fatal(err)
		}
	}
}

// budget is a number of bytes.
type budget struct{ free int64 }

func (b *budget) TryAcquire(n int64) bool {
	if n > b.free {
		return false
	}
	b.free -= n
	return true
}

func (b *budget) Release(n int64) { b.free += n }

// TestRecentWithinABudget: what a sender remembers is a part of what the receiver does, and is
// given back.
func TestRecentWithinABudget(t *testing.T) {
	b := &budget{free: 250}
	sender, receiver := Recent{Budget: b}, Recent{}
	for i := range 30 {
		if i == 15 {
			b.free += 300
		}
		ref := Reference{fmt.Sprint("a/", i), int64(i + 1)}
		sender.Add(ref, make([]byte, 100), nil)
		receiver.Add(ref, make([]byte, 100), nil)
		base, _ := sender.Like(nil)
		if base != (Reference{}) && receiver.Find(base) == nil {
			t.Fatalf("after %d: the receiver does not have %v", i, base)
		}
		if base == (Reference{}) {
			t.Fatalf("after %d: the sender remembers nothing", i)
		}
	}
	if b.free != 50 {
		t.Errorf("%d bytes are free", b.free)
	}
	sender.Close()
	if b.free != 550 {
		t.Errorf("%d bytes are free in the end", b.free)
	}
}
