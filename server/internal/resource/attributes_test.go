package resource_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func TestAttributes(t *testing.T) {
	widget := custom("example.com", "v1", "widgets", "Widget")
	widget.Fields = append(widget.Fields, resource.Field{Name: "from", Paths: [][]string{{"a", "first"}, {"second"}}, Default: "none"})
	for _, tt := range []struct {
		name, json string
		want       resource.Attributes
	}{
		{"all", `{"metadata":{"name":"n","namespace":"s","uid":"u","labels":{"b":"2","a":"1"}},"spec":{"color":"red","size":7}}`,
			resource.Attributes{Name: "n", Namespace: "s", UID: "u", Labels: resource.Labels{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, Fields: []string{"red", "7", "none"}}},
		{"white space and escapes", " { \"x\" : [ { } , \"}\" ] , \"met\\u0061data\" : { \"name\" : \"a\\\"b\\\\\" , \"labels\" : { \"k\\t\" : \"\\u00e9\" } } } ",
			resource.Attributes{Name: `a"b\`, Labels: resource.Labels{{Key: "k\t", Value: "é"}}, Fields: []string{"", "0", "none"}}},
		{"null is absent", `{"metadata":{"name":"n","labels":null},"spec":{"color":null,"size":null}}`,
			resource.Attributes{Name: "n", Fields: []string{"", "0", "none"}}},
		{"a boolean", `{"metadata":{"name":"n"},"spec":{"color":true}}`,
			resource.Attributes{Name: "n", Fields: []string{"true", "0", "none"}}},
		{"the first path wins, whatever the order", `{"metadata":{"name":"n"},"second":"2","a":{"first":"1"}}`,
			resource.Attributes{Name: "n", Fields: []string{"", "0", "1"}}},
		{"an empty first path does not", `{"metadata":{"name":"n"},"a":{"first":""},"second":"2"}`,
			resource.Attributes{Name: "n", Fields: []string{"", "0", "2"}}},
		{"other types are ignored", `{"metadata":{"name":"n","labels":[1]},"spec":{"color":{"a":[1,{}]},"size":[[]]},"a":3}`,
			resource.Attributes{Name: "n", Fields: []string{"", "0", "none"}}},
		{"the last of equal labels", `{"metadata":{"name":"n","labels":{"a":"1","a":"2"}}}`,
			resource.Attributes{Name: "n", Labels: resource.Labels{{Key: "a", Value: "2"}}, Fields: []string{"", "0", "none"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := widget.Attributes([]byte(tt.json))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestAttributesOfBadJSON(t *testing.T) {
	widget := custom("example.com", "v1", "widgets", "Widget")
	for _, bad := range []string{
		``, `null`, `[]`, `{`, `{}`, `{"metadata":{}}`, `{"metadata":{"name":""}}`, `{"metadata":{"name":"n"`, `{"metadata":{"name":"n}}`,
		`{"metadata" {"name":"n"}}`, `{"metadata":{"name":"n\`, `{"metadata":{"name":"\x"}}`, `{"a":,"metadata":{"name":"n"}}`,
		`{"metadata":{"name":"n","labels":{"a":1}}}`, `{"a":}`, `{"a":[}`, `{"metadata":{"name":"n" "uid":"u"}}`, "{\"a\":\x00}",
	} {
		if got, err := widget.Attributes([]byte(bad)); err == nil {
			t.Errorf("%s gave %+v", bad, got)
		}
	}
}

func TestLabelsAreLabels(t *testing.T) {
	var many resource.Labels
	set := labels.Set{}
	for c := 'a'; c <= 'p'; c++ {
		many = append(many, resource.Label{Key: string(c), Value: string(c) + "1"})
		set[string(c)] = string(c) + "1"
	}
	for _, l := range []resource.Labels{nil, many[:3], many} {
		for _, key := range []string{"a", "c", "m", "p", "zz", ""} {
			want := slices.Contains(l, resource.Label{Key: key, Value: set[key]})
			if got, ok := l.Lookup(key); ok != want || l.Has(key) != want || l.Get(key) != got || ok && got != set[key] {
				t.Errorf("%d labels, key %q: %q, %v", len(l), key, got, ok)
			}
		}
	}
	selector, err := labels.Parse("a=a1,zz!=1,p in (p1)")
	if err != nil || !selector.Matches(many) {
		t.Errorf("a selector does not match: %v", err)
	}
}

func TestFieldIndexOfView(t *testing.T) {
	table := builtin.Table()
	core, shown := table.Lookup("", "v1", "events"), table.Lookup("events.k8s.io", "v1", "events")
	attributes, err := shown.Attributes([]byte(`{"metadata":{"name":"e","namespace":"n"},"involvedObject":{"kind":"Pod"},"reportingComponent":"kubelet"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"regarding.kind": "Pod", "reportingController": "kubelet", "reason": ""} {
		i, ok := shown.FieldIndex(name)
		if !ok || attributes.Fields[i] != want {
			t.Errorf("%s: %d %v %q", name, i, ok, attributes.Fields)
		}
	}
	if i, ok := core.FieldIndex("source"); !ok || attributes.Fields[i] != "kubelet" {
		t.Errorf("source falls back to the reporting component: %q", attributes.Fields)
	}
	if _, ok := shown.FieldIndex("involvedObject.kind"); ok {
		t.Error("events.k8s.io selects by the names of core")
	}
}

// FuzzAttributes compares with a full decode wherever that succeeds, and
// wants no panic elsewhere.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(podJSON))
	f.Add([]byte(`{"metadata":{"name":"n","labels":{"a":"\u0041"}},"spec":{"nodeName":"x"}}`))
	f.Add([]byte(`{"a":[{"b":"]"}],"metadata":{"name":1e5}}`))
	pods := builtin.Table().Lookup("", "v1", "pods")
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := pods.Attributes(data)
		var want struct {
			Metadata struct {
				Name, Namespace, UID string
				Labels               map[string]string
			}
		}
		if !utf8.Valid(data) || hasDuplicates(data) || json.Unmarshal(data, &want) != nil || want.Metadata.Name == "" {
			return
		}
		if err != nil {
			t.Fatalf("valid JSON refused: %v", err)
		}
		m := want.Metadata
		if got.Name != m.Name || got.Namespace != m.Namespace || got.UID != m.UID || len(got.Labels) != len(m.Labels) {
			t.Fatalf("got %+v, want %+v", got, m)
		}
		for key, value := range m.Labels {
			if got.Labels.Get(key) != value {
				t.Fatalf("label %q is %q, want %q", key, got.Labels.Get(key), value)
			}
		}
	})
}
