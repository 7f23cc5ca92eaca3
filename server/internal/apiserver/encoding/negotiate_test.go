package encoding

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/levelwire/levelwire/server/internal/status"
)

const (
	acceptTable        = "application/json;as=Table;v=v1;g=meta.k8s.io"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	acceptProtobuf     = "application/vnd.kubernetes.protobuf"
)

// TestPrettyForPeople: people read what curl and browsers get, but not streams, nor what
// the page at /ui/ gets.
func TestPrettyForPeople(t *testing.T) {
	for _, tt := range []struct {
		agent, query, header string
		offer                Offer
		want                 bool
	}{
		{"curl/8.1", "", "", ObjectOffer, true}, {"Wget/1", "", "", ListOffer, true}, {"Mozilla/5.0 (X11)", "", "", PlainOffer, true},
		{"Mozilla/4.0", "", "", ObjectOffer, false}, {"kubectl/v1.37", "", "", ObjectOffer, false}, {"", "", "", ObjectOffer, false},
		{"curl/8.1", "?pretty=false", "", ObjectOffer, false}, {"curl/8.1", "?pretty=0", "", ObjectOffer, false}, {"x", "?pretty=true", "", ObjectOffer, true},
		{"curl/8.1", "?notpretty=1", "", ObjectOffer, true},
		{"curl/8.1", "", "", WatchOffer, false}, {"Mozilla/5.0", "", "key", ObjectOffer, false},
	} {
		for _, accept := range []string{"", "application/json"} {
			r := httptest.NewRequest(http.MethodGet, "/"+tt.query, nil)
			r.Header.Set("User-Agent", tt.agent)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			if tt.header != "" {
				r.Header.Set("Levelwire-Ui", tt.header)
			}
			got, err := Negotiate(r, tt.offer)
			if err != nil || got.Pretty != tt.want {
				t.Errorf("%q, %q: pretty is %v (%v)", tt.agent, tt.query, got.Pretty, err)
			}
		}
	}
}

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct {
		accept string
		offer  Offer
		want   Form
		fails  bool
	}{
		{"", ObjectOffer, Form{}, false},
		{"*/*", ObjectOffer, Form{}, false},
		{"application/*", ObjectOffer, Form{}, true},
		{"application/json", ObjectOffer, Form{}, false},
		{"application/json;pretty=1", ObjectOffer, Form{Pretty: true}, false},
		{"application/yaml", ObjectOffer, Form{Media: YAML}, false},
		{"text/html, application/json;q=0.5", ObjectOffer, Form{}, false},
		{"application/json;q=0.5, " + acceptProtobuf, ObjectOffer, Form{Media: Protobuf}, false},
		{"application/json, " + acceptProtobuf, ObjectOffer, Form{}, false},
		{"application/json;q=0", ObjectOffer, Form{}, true},
		{"application/json;q=2", ObjectOffer, Form{}, true},
		{acceptProtobuf + ",application/json", Offer{media: PlainOffer.media, custom: true}, Form{}, false},
		{acceptProtobuf, Offer{media: PlainOffer.media, custom: true}, Form{}, true},
		{acceptTable + ",application/json", ListOffer, Form{As: AsTable, MetaVersion: "v1"}, false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", ListOffer, Form{As: AsTable, MetaVersion: "v1beta1"}, false},
		{"application/json;as=Table;v=v7;g=meta.k8s.io", ListOffer, Form{}, true},
		{"application/json;as=Table;v=v1;g=other", ListOffer, Form{}, true},
		{acceptProtobuf + ";as=Table;v=v1;g=meta.k8s.io," + acceptTable, ListOffer, Form{As: AsTable, MetaVersion: "v1"}, false},
		{acceptMetadataList, ListOffer, Form{As: AsMetadata, MetaVersion: "v1"}, false},
		{acceptMetadataList, ObjectOffer, Form{}, true},
		{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ListOffer, Form{}, true},
		{"application/json;stream=watch", WatchOffer, Form{}, false},
		{"application/json;stream=watch", ObjectOffer, Form{}, false},
		{"application/json;stream=other", WatchOffer, Form{}, true},
		{"application/yaml", WatchOffer, Form{}, true},
		{"application/cbor", ObjectOffer, Form{Media: CBOR}, false},
		{"application/cbor", WatchOffer, Form{Media: CBOR}, false},
		{"application/cbor-seq", WatchOffer, Form{Media: CBOR}, false},
		{"application/cbor-seq", ListOffer, Form{}, true},
		{"application/msgpack", ObjectOffer, Form{}, true},
		{";;;,,,=", ObjectOffer, Form{}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", tt.accept)
		got, err := Negotiate(r, tt.offer)
		if (err != nil) != tt.fails || got != tt.want {
			t.Errorf("Accept %q: got %+v, %v", tt.accept, got, err)
		}
		if err != nil && status.Of(err).Code != 406 {
			t.Errorf("Accept %q: %v is no 406", tt.accept, err)
		}
	}
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"", "*/*", acceptTable, acceptMetadataList + ",application/json;q=0.1", acceptProtobuf + ";stream=watch"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for _, offer := range []Offer{PlainOffer, ObjectOffer, ListOffer, WatchOffer} {
			r := &http.Request{Header: http.Header{"Accept": {header}}, URL: httptest.NewRequest(http.MethodGet, "/", nil).URL}
			form, err := Negotiate(r, offer)
			if err != nil {
				if status.Of(err).Code != http.StatusNotAcceptable {
					t.Fatalf("%q: %v", header, err)
				}
				continue
			}
			if (form.As != AsObject) != (form.MetaVersion != "") || form.As != AsObject && !offer.shapes {
				t.Fatalf("%q gave %+v, which is not offered", header, form)
			}
		}
	})
}
