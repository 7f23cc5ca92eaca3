package main

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// stack is a sample from the outermost function to the one that ran.
func stack(value int64, functions ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{1, value}}
	for _, name := range functions {
		s.Location = append([]*profile.Location{{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}}, s.Location...)
	}
	return s
}

func TestTree(t *testing.T) {
	inlined := stack(30, "main.main")
	inlined.Location[0].Line = append([]profile.Line{{Function: &profile.Function{Name: "main.inlined"}}}, inlined.Location[0].Line...)
	root := tree(&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{stack(50, "main.main", "main.list"), stack(20, "main.main", "main.list", "main.item"), inlined},
	})
	main := root.kids["main.main"]
	if root.value != 100 || main.value != 100 || main.kids["main.list"].value != 70 || main.kids["main.inlined"].value != 30 {
		t.Errorf("sums are wrong: %+v", main)
	}
	if got := root.depth(1); got != 4 {
		t.Errorf("depth %d", got)
	}
	if got := root.depth(25); got != 3 {
		t.Errorf("depth without what is small: %d", got)
	}
	var out strings.Builder
	if err := draw(&out, "a < b", root); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a &lt; b", "<title>main.list: 70.0 %</title>", "main.inlined"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		size float64
		want string
	}{{10, ""}, {40, "run.."}, {400, "runtime.mallocgc"}} {
		if got := fit("runtime.mallocgc", c.size); got != c.want {
			t.Errorf("%v: %q, want %q", c.size, got, c.want)
		}
	}
}
