package builtin_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	levelresource "github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// difficultFills replaces fillers whose values are all easy to transcode.
func difficultFills() []any {
	texts := []string{"", "v", "with \"quotes\" and \\", "line\nbreak\ttab", "<&>\u2028", "dots … and 鎖 and 🙂", "\x00\x1f", strings.Repeat("long ", 60)}
	quantities := []string{"0", "1", "100m", "1500m", "2000m", "1Ki", "1024Ki", "512Mi", "1000", "123456789", "1e3", "0.5", "-3", "12E", "1Gi", "1000k", "5000M"}
	return append(fillFuncs(),
		func(s *string, c randfill.Continue) { *s = texts[c.Intn(len(texts))] },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(quantities[c.Intn(len(quantities))])
		},
		func(t *metav1.Time, c randfill.Continue) {
			*t = []metav1.Time{{}, {Time: time.Unix(int64(c.Intn(1<<31)), 0)}, {Time: time.Unix(-int64(c.Intn(1<<31)), 5)}, {Time: time.Date(2028, 2, 29, 23, 59, 59, 0, time.UTC)}}[c.Intn(4)]
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = []intstr.IntOrString{intstr.FromInt32(-7), intstr.FromInt32(8080), intstr.FromString("http"), {}}[c.Intn(4)]
		},
		func(b *[]byte, c randfill.Continue) { *b = bytes.Repeat([]byte{byte(c.Intn(256))}, c.Intn(5)) },
		func(f *metav1.FieldsV1, c randfill.Continue) {
			f.SetRawString([]string{`{}`, `{"f:a":{"k:{\"x\":\"}\"}":{}}}`}[c.Intn(2)])
		},
	)
}

// decodedProtobuf is the message that decoding and encoding again give.
func decodedProtobuf(res *levelresource.Resource, json []byte) ([]byte, error) {
	obj, err := res.DecodeShown(json)
	if err != nil {
		return nil, err
	}
	return levelresource.MarshalProtobufMessage(obj)
}

// TestTranscodingIsDecodingAndEncoding fills objects of every kind at random.
func TestTranscodingIsDecodingAndEncoding(t *testing.T) {
	for _, res := range builtin.Table().All() {
		t.Run(fmt.Sprint(res.GroupVersion(), res.Kind), func(t *testing.T) {
			for seed := range int64(40) {
				filler := randfill.NewWithSeed(seed).NilChance([]float64{0.1, 0.5, 0.8}[seed%3]).NumElements(0, 3).MaxDepth(14).Funcs(difficultFills()...)
				obj := res.New()
				filler.Fill(obj)
				json, err := res.Marshal(obj)
				if err != nil {
					continue // not every random value has a JSON form
				}
				want, err := decodedProtobuf(res, json)
				if errors.Is(err, levelresource.ErrNoProtobuf) {
					t.Skip("the kind has no protobuf form")
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := res.AppendProtobuf([]byte("before"), json)
				if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
					at := 0
					for got = got[len("before"):]; at < min(len(got), len(want)) && got[at] == want[at]; at++ {
					}
					t.Fatalf("seed %d, %v: from byte %d on\n%q\ninstead of\n%q", seed, err, at, got[at:min(at+50, len(got))], want[at:min(at+50, len(want))])
				}
			}
		})
	}
}

// FuzzTranscoding reads JSON that this project did not write: what can be decoded is
// transcoded to the same. What cannot is not stored either.
func FuzzTranscoding(f *testing.F) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	for _, text := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,"labels":{"b":"2","a":"1"}},"spec":{"containers":[{"name":"x","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1.5","memory":1}}}]}}`,
		` { "metadata" : { "name" : "\u00e9\ud83d\ude42\n" , "generation" : 1e3 } , "status" : { "startTime" : "2026-03-31T25:00:00Z" } } `,
		`{"metadata":{"name":"a","name":"b"},"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}},null],"activeDeadlineSeconds":-1}}`,
		`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"http"}},"env":[]}],"hostUsers":true},"unknown":[{"a":"}"}]}`,
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}},{"time":"2026-01-01T00:00:00Z","fieldsV1":null}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, json []byte) {
		want, wantErr := decodedProtobuf(pods, json)
		got, err := pods.AppendProtobuf(nil, json)
		if wantErr == nil && (err != nil || !bytes.Equal(got, want)) {
			t.Fatalf("%s\nis\n%q\ninstead of\n%q (%v)", json, got, want, err)
		}
	})
}
