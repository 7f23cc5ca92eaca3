package shard

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

const low = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
const high = "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')"

func TestRangesSplitTheHashes(t *testing.T) {
	lower, upper := parse(t, low), parse(t, high)
	both, all := parse(t, high+" || "+low), parse(t, "shardRange(object.metadata.uid,'0x0','0x10000000000000000')")
	for i := range 1000 {
		uid := fmt.Sprint("uid-", i)
		reference := fnv.New64a()
		reference.Write([]byte(uid))
		inLow := reference.Sum64() < 1<<63
		if lower.Matches(uid, "x") != inLow || upper.Matches(uid, "x") == inLow {
			t.Fatalf("%s with hash %x is in the wrong half", uid, reference.Sum64())
		}
		if !both.Matches(uid, "") || !all.Matches(uid, "") {
			t.Fatalf("%s is in no half", uid)
		}
	}
	if len(both.ranges) != 1 || both.ranges[0] != (span{0, math.MaxUint64}) {
		t.Errorf("adjacent ranges are %v", both.ranges)
	}
}

func TestBoundsAreExact(t *testing.T) {
	h := Hash("one")
	for _, tt := range []struct {
		first, end uint64
		want       bool
	}{{h, h + 1, true}, {h - 1, h, false}, {h + 1, h + 2, false}, {0, h, false}, {0, h + 1, true}} {
		s := parse(t, fmt.Sprintf("shardRange(object.metadata.namespace,'0x%x','0x%016x')", tt.first, tt.end))
		if got := s.Matches("ignored", "one"); got != tt.want {
			t.Errorf("hash %x in [%x, %x): %v", h, tt.first, tt.end, got)
		}
	}
}

func TestSeveralRanges(t *testing.T) {
	s := parse(t, "shardRange(object.metadata.uid,'0x5','0x7')||shardRange(object.metadata.uid,'0x1','0x2')||shardRange(object.metadata.uid,'0x6','0x9')")
	want := []span{{1, 1}, {5, 8}}
	if fmt.Sprint(s.ranges) != fmt.Sprint(want) {
		t.Errorf("ranges %v, want %v", s.ranges, want)
	}
}

func TestNoSelectorWantsEverything(t *testing.T) {
	var s *Selector
	if !s.Matches("x", "y") || s.String() != "" {
		t.Error("a nil selector leaves something out")
	}
}

func TestRefusals(t *testing.T) {
	for _, text := range []string{
		"", " ", "shardRange", "shardRange()", low + " ||", "|| " + low, low + " && " + high, low + low,
		"shardRange(metadata.uid,'0x0','0x1')",
		"shardRange(object.metadata.name,'0x0','0x1')",
		"shardRange(object.metadata.uidx,'0x0','0x1')",
		"shardRange(object.metadata.uid,'0','1')",
		"shardRange(object.metadata.uid,'0x','0x1')",
		"shardRange(object.metadata.uid,0x0,0x1)",
		"shardRange(object.metadata.uid,'0x0','0x1'",
		"shardRange(object.metadata.uid,'0x0','0x1",
		"shardRange(object.metadata.uid,'0x0')",
		"shardRange(object.metadata.uid,'0x1','0x1')",
		"shardRange(object.metadata.uid,'0x2','0x1')",
		"shardRange(object.metadata.uid,'0x-1','0x1')",
		"shardRange(object.metadata.uid,'0x0','0x1_0')",
		"shardRange(object.metadata.uid,'0x0','0x10000000000000001')",
		"shardRange(object.metadata.uid,'0x10000000000000000','0x10000000000000000')",
		low + "||shardRange(object.metadata.namespace,'0x0','0x1')",
		strings.Repeat(low+"||", maxRanges) + low,
		low + strings.Repeat(" ", maxLength),
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%.80q is taken for %v", text, s.ranges)
		}
	}
}

// FuzzParse holds what is accepted against the evaluation of apimachinery.
func FuzzParse(f *testing.F) {
	f.Add(low, "uid")
	f.Add(high+" || "+low, "")
	f.Add("shardRange(object.metadata.namespace,'0x0','0xffffffffffffffff')", "ns")
	f.Add("shardRange(object.metadata.uid,'0x0'", "uid")
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || fmt.Sprint(again.ranges) != fmt.Sprint(s.ranges) {
			t.Fatalf("%q does not survive: %v", text, err)
		}
		var requirements []sharding.ShardRangeRequirement
		for _, r := range s.ranges {
			end := fmt.Sprintf("0x%016x", r.last+1)
			if r.last == math.MaxUint64 {
				end = "0x10000000000000000"
			}
			requirements = append(requirements, sharding.ShardRangeRequirement{
				Key: string(s.key), Start: fmt.Sprintf("0x%016x", r.first), End: end})
		}
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(value), Namespace: value}}
		want, err := sharding.NewSelector(requirements...).Matches(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches(value, value); got != want {
			t.Fatalf("%q with %q: %v, want %v", text, value, got, want)
		}
	})
}

func BenchmarkMatches(b *testing.B) {
	s := parse(b, low)
	for b.Loop() {
		s.Matches("8c1a6a33-3f6f-4d0e-9a54-0d3c2b2f7f11", "default")
	}
}

func parse(t testing.TB, text string) *Selector {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
