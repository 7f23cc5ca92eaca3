package patch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzMerge holds merge patches against the library's.
func FuzzMerge(f *testing.F) {
	for _, body := range mergePatches {
		f.Add([]byte(mergedPod), []byte(body))
	}
	for _, patch := range []string{
		`{"a":[{"b":null,"c":[null,{"d":null}]}]}`, `{"o":[{"b":null}]}`, `{"o":{"p":{"q":null,"r":[{"s":null}]}}}`, `{"new":{"p":null,"q":{"r":null}}}`,
		`{"n":{"p":null}}`, `{"n":[{"p":null}]}`, `{"a":{"null":"null"}}`, `{"\u006f":{"x":1},"e\"s":2}`, ` { "o" : { "x" : [ 1 , null , { } ] } } `, `{"a":[[],[[null]]],"s":null,"o":null}`,
		`{"o":{},"o":1}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(`{"a":[1,2],"o":{"x":1,"p":{"q":1,"z":"\u00e9"}},"n":null,"e\"s":"t","s":"<>","f":1.50e3}`), []byte(patch))
	}
	f.Fuzz(func(t *testing.T, doc, body []byte) {
		if !jsontext.Value(doc).IsValid() || bytes.TrimLeft(doc, " \t\r\n")[0] != '{' {
			t.Skip("no state of an object")
		}
		p, err := Parse(types.MergePatchType, body)
		if err != nil {
			t.Skip(err)
		}
		got, err := p.Apply(doc, nil)
		want, wantErr := library(doc, body)
		if wantErr != nil {
			t.Skip(wantErr)
		}
		if err != nil || !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
			t.Fatalf("%s of %s:\n%s, %v\nwant\n%s", body, doc, got, err, want)
		}
	})
}

func library(doc, body []byte) (out []byte, err error) {
	defer func() {
		if recover() != nil {
			err = jsonpatch.ErrBadJSONPatch
		}
	}()
	return jsonpatch.MergePatch(doc, body)
}

// TestMergesCopyWhatTheyDoNotName: numbers, escapes and the order of members stay as they are.
func TestMergesCopyWhatTheyDoNotName(t *testing.T) {
	p, err := Parse(types.MergePatchType, []byte(`{"b":{"y":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Apply([]byte(`{"z":1.50,"b":{"x":"\u003c","y":1},"a":"<"}`), nil)
	if want := `{"z":1.50,"b":{"x":"\u003c","y":2},"a":"<"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if !json.Valid(got) {
		t.Error("it is no JSON")
	}
}
