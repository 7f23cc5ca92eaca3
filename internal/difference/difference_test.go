package difference

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
)

// TestHashIsAsSpecified holds the values of docs/users/difference.md.
func TestHashIsAsSpecified(t *testing.T) {
	seed := Seed{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	h := NewHasher(seed, 18)
	for _, c := range []struct {
		key     string
		version uint64
		bucket  uint32
		hash    uint64
	}{
		{"default/web-0", 4711, 54739, 0x58205fb74a0523cc},
		{"node-1", 1, 13167, 0xc95faa5977d705cf},
	} {
		if bucket, hash := h.Keyed(c.key, c.version); bucket != c.bucket || hash != c.hash {
			t.Errorf("%s at %d: bucket %d, hash %#x; want %d, %#x", c.key, c.version, bucket, hash, c.bucket, c.hash)
		}
	}
}

func TestNamedIsKeyed(t *testing.T) {
	h := NewHasher(NewSeed(), 7)
	for range 3 { // the hasher's buffer is used again
		b1, h1 := h.Keyed("default/web", 12)
		b2, h2 := h.Named("default", "web", 12)
		b3, h3 := h.Keyed("node", 12)
		b4, h4 := h.Named("", "node", 12)
		if b1 != b2 || h1 != h2 || b3 != b4 || h3 != h4 || h1 == h3 {
			t.Fatal(b1, b2, b3, b4, h1, h2, h3, h4)
		}
	}
}

// TestHashTellsVersionsAndSeedsApart: a change moves the hash and not the
// bucket; another seed moves both.
func TestHashTellsVersionsAndSeedsApart(t *testing.T) {
	one, other := NewHasher(NewSeed(), MaxBits), NewHasher(NewSeed(), MaxBits)
	seen := map[uint64]bool{}
	moved := 0
	for i := range 2000 {
		key := fmt.Sprintf("ns/%d", i)
		b1, h1 := one.Keyed(key, 7)
		b2, h2 := one.Keyed(key, 8)
		b3, h3 := other.Keyed(key, 7)
		if b1 != b2 {
			t.Fatal("another version is in another bucket")
		}
		if b1 != b3 {
			moved++
		}
		for _, h := range []uint64{h1, h2, h3} {
			if seen[h] {
				t.Fatal("a hash came twice")
			}
			seen[h] = true
		}
	}
	if moved < 1900 {
		t.Errorf("only %d of 2000 buckets depend on the seed", moved)
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "7": 7, "9223372036854775807": 1<<63 - 1} {
		if got, err := Version(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "00", "07", "-1", "1x", "9223372036854775808", "99999999999999999999", "v1"} {
		if got, err := Version(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestBitsFor(t *testing.T) {
	for objects, want := range map[int]int{0: 0, 16: 0, 17: 1, 32: 1, 33: 2, 200_000: 14, 1 << 30: MaxBits} {
		if got := BitsFor(objects); got != want {
			t.Errorf("%d objects: 2^%d buckets", objects, got)
		}
	}
}

// digestOf makes a digest of so many objects.
func digestOf(objects int) *Digest {
	d := NewDigest(NewSeed(), objects)
	d.Known = uint64(objects)
	h := NewHasher(d.Seed, d.Bits)
	for i := range objects {
		d.Add(h.Keyed(fmt.Sprint("default/", i), uint64(i)))
	}
	return d
}

func TestDigestSurvivesTheWire(t *testing.T) {
	for _, objects := range []int{0, 1, 16, 17, 1000} {
		d := digestOf(objects)
		got, err := ParseDigest(d.Append(nil))
		if err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%d objects: %v, %v", objects, got, err)
		}
	}
}

func TestBrokenDigestsAreRefused(t *testing.T) {
	good := digestOf(20).Append(nil)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, data := range map[string][]byte{
		"empty": nil, "short": good[:39], "without its last byte": good[:len(good)-1], "too long": append(bytes.Clone(good), 0),
		"magic": change(0, 'X'), "format": change(4, 2), "buckets": change(5, MaxBits+1), "fewer buckets": change(5, 0),
		"reserved": change(7, 1), "version": change(24, 0x80), "objects": change(32, 0x80),
	} {
		if d, err := ParseDigest(data); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func sampleHeader(bits int) *Header {
	h := &Header{Version: 12, Selected: 3, Checksum: 0xfeed, Unchanged: 1, Sent: 2, Differing: NewSet(bits)}
	h.Differing.Add(uint32(1<<bits - 1))
	return h
}

func TestHeaderSurvivesTheWire(t *testing.T) {
	for bits := range MaxBits + 1 {
		want := sampleHeader(bits)
		got, err := ReadHeader(bytes.NewReader(want.Append(nil, bits)), bits)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("2^%d buckets: %+v, %v", bits, got, err)
		}
	}
}

func TestBrokenAnswersAreRefused(t *testing.T) {
	good := sampleHeader(4).Append(nil, 4)
	for at := range good {
		if _, err := ReadHeader(bytes.NewReader(good[:at]), 4); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
	for at, to := range map[int]byte{0: 'X', 4: 2, 5: 5, 6: 1, 8: 0x80} {
		broken := bytes.Clone(good)
		broken[at] = to
		if h, err := ReadHeader(bytes.NewReader(broken), 4); err == nil {
			t.Errorf("byte %d is %#x: %+v", at, to, h)
		}
	}
	beyond := sampleHeader(1).Append(nil, 1)
	beyond[len(beyond)-1] = 4
	if h, err := ReadHeader(bytes.NewReader(beyond), 1); err == nil {
		t.Errorf("bucket 2 of 2: %+v", h)
	}
	if err := ReadEnd(bytes.NewReader(AppendEnd(nil))); err != nil {
		t.Error(err)
	}
	for _, end := range []string{"", "LWD", "LWDQ", "LWDE."} {
		if err := ReadEnd(bytes.NewReader([]byte(end))); err == nil {
			t.Errorf("%q is an end", end)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	for _, objects := range []int{0, 1, 100} {
		f.Add(digestOf(objects).Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseDigest(data)
		if err != nil {
			return
		}
		if again := d.Append(nil); !bytes.Equal(again, data) {
			t.Errorf("%x was read as %x", data, again)
		}
	})
}

func FuzzReadHeader(f *testing.F) {
	for _, bits := range []int{0, 2, 5} {
		f.Add(sampleHeader(bits).Append(nil, bits), bits)
	}
	f.Fuzz(func(t *testing.T, data []byte, bits int) {
		if bits < 0 || bits > MaxBits {
			return
		}
		h, err := ReadHeader(bytes.NewReader(data), bits)
		if err != nil {
			return
		}
		if again := h.Append(nil, bits); !bytes.HasPrefix(data, again) {
			t.Errorf("%x was read as %x", data, again)
		}
	})
}

// BenchmarkHash is what one object costs either side.
func BenchmarkHash(b *testing.B) {
	h := NewHasher(NewSeed(), 14)
	b.ReportAllocs()
	for b.Loop() {
		h.Keyed("team-42/service-1234-05f3a91c07-0abcd", 4711)
	}
}
