package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// record keeps what frames cuts out, so that runs can be compared.
type record struct{ lines []string }

func (r *record) dataBegins(stream uint32, length int) error {
	r.lines = append(r.lines, fmt.Sprintf("data %d %d ", stream, length))
	return nil
}

func (r *record) data(piece []byte) error {
	r.lines[len(r.lines)-1] += string(piece)
	return nil
}

func (r *record) dataEnds(last bool) error {
	r.lines[len(r.lines)-1] += fmt.Sprintf(" %t", last)
	return nil
}

func (r *record) control(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) error {
	r.lines = append(r.lines, fmt.Sprintf("%s %x %d %x", kind, flags, stream, payload))
	return nil
}

// cutBy cuts b in pieces of n bytes.
func cutBy(b []byte, n int) ([]string, error) {
	var f frames
	var r record
	for piece := range slices.Chunk(b, n) {
		if err := f.cut(piece, &r); err != nil {
			return r.lines, err
		}
	}
	return r.lines, nil
}

func someFrames(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	for _, err := range []error{
		f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}),
		f.WriteData(1, false, []byte("first")),
		f.WriteDataPadded(3, true, []byte("padded"), make([]byte, 7)),
		f.WriteData(5, false, nil),
		f.WriteDataPadded(5, true, nil, make([]byte, 3)),
		f.WritePing(false, [8]byte{1, 2}),
		f.WriteSettingsAck(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestFramesAreTheSameInWhateverPiecesTheyArrive(t *testing.T) {
	want := []string{
		"SETTINGS 0 0 000500100000", "data 1 5 first false", "data 3 14 padded true", "data 5 0  false", "data 5 4  true",
		"PING 0 0 0102000000000000", "SETTINGS 1 0 ",
	}
	b := someFrames(t)
	for n := 1; n <= len(b); n++ {
		if got, err := cutBy(b, n); err != nil || !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: %q, %v; want %q", n, got, err, want)
		}
	}
}

func TestFramesThatCannotBe(t *testing.T) {
	for name, b := range map[string][]byte{
		"too large":              {0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1},
		"padded without padding": {0, 0, 0, 0, 8, 0, 0, 0, 1},
		"more padding than data": {0, 0, 2, 0, 8, 0, 0, 0, 1, 2, 0},
	} {
		if got, err := cutBy(b, 4); err == nil {
			t.Errorf("%s: no error but %q", name, got)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(someFrames(f), 3)
	f.Add([]byte{0, 0, 2, 0, 8, 0, 0, 0, 1, 2, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n <= 0 || len(b) == 0 {
			return
		}
		whole, err := cutBy(b, len(b))
		pieces, err2 := cutBy(b, n)
		if fmt.Sprint(err) != fmt.Sprint(err2) || !slices.Equal(whole, pieces) {
			t.Fatalf("in one piece %q (%v), in pieces of %d %q (%v)", whole, err, n, pieces, err2)
		}
	})
}

func split(b []byte, n int, protobuf bool) (events []string, err error) {
	s := Splitter{Protobuf: protobuf}
	for piece := range slices.Chunk(b, n) {
		err := s.Cut(piece, func(event []byte) error { events = append(events, string(event)); return nil })
		if err != nil {
			return events, err
		}
	}
	return events, nil
}

func TestEventsAreTheSameInWhateverPiecesTheyArrive(t *testing.T) {
	want := []string{`{"a":1}`, ``, `{"bc":"defgh"}`, `x`}
	var lines, lengths []byte
	for _, e := range want {
		lines = append(append(lines, e...), '\n')
		lengths = append(binary.BigEndian.AppendUint32(lengths, uint32(len(e))), e...)
	}
	for n := 1; n <= len(lengths); n++ {
		if got, err := split(lines, n, false); err != nil || !slices.Equal(got, want) {
			t.Fatalf("lines in pieces of %d: %q, %v", n, got, err)
		}
		if got, err := split(lengths, n, true); err != nil || !slices.Equal(got, want) {
			t.Fatalf("lengths in pieces of %d: %q, %v", n, got, err)
		}
	}
	if _, err := split([]byte{0xff, 0, 0, 0, 1, 1}, 5, true); err == nil {
		t.Error("an event of 4 GB is awaited")
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("{}\n\n{}"), 2, false)
	f.Add([]byte("\x00\x00\x00\x01x\x00\x00\x00\x00"), 3, true)
	f.Fuzz(func(t *testing.T, b []byte, n int, protobuf bool) {
		if n <= 0 || len(b) == 0 {
			return
		}
		one, err := split(b, 1, protobuf)
		pieces, err2 := split(b, n, protobuf)
		if err == nil && err2 == nil && !slices.Equal(one, pieces) {
			t.Fatalf("byte by byte %q, in pieces of %d %q", one, n, pieces)
		}
	})
}

// TestDeletionsHaveNoTimeOfTheirOwn: they show the annotation of an earlier write.
func TestDeletionsHaveNoTimeOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		kind, mark string
		timed      bool
	}{{"ADDED", "", true}, {"MODIFIED", "", true}, {"MODIFIED", `"deletionTimestamp":"2026-01-02T03:04:05Z",`, false}, {"DELETED", "", false}} {
		e, err := readJSON(fmt.Appendf(nil, `{"type":%q,"object":{"metadata":{"resourceVersion":"7",%s"annotations":{%q:"%019d"}}}}`, c.kind, c.mark, sentKey, time.Now().UnixNano()))
		if err != nil || e.version != 7 || e.sent.IsZero() == c.timed {
			t.Errorf("%+v: %+v, %v", c, e, err)
		}
	}
}

func TestQuantilesAreRightWithinThreePercent(t *testing.T) {
	var h, other Histogram
	for i := range 100_000 {
		to := &h
		if i%2 == 0 {
			to = &other
		}
		to.Add(time.Duration(i) * 100 * time.Microsecond)
	}
	h.Merge(&other)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99} {
		got, want := h.Quantile(q).Seconds(), q*10
		if got < want*0.97 || got > want*1.03 {
			t.Errorf("quantile %g is %g, want %g", q, got, want)
		}
	}
	if h.Quantile(1) != h.Max || h.Max != 9999900*time.Microsecond {
		t.Errorf("the most is %s, of %s", h.Quantile(1), h.Max)
	}
	if empty := (&Histogram{}).Quantile(0.5); empty != 0 {
		t.Errorf("an empty one has the median %s", empty)
	}
}
