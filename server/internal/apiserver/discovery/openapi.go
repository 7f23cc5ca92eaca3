package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/processors"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
)

// What clients ask for protobuf as. An @ may not be in a media type, and
// clients choke on an answer that has it, so that both are named with a dot
// there, as Kubernetes does.
const (
	openAPIv2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	openAPIv3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// openAPIDocument is one description in both encodings, each made when it is
// first asked for. Readers take no lock.
type openAPIDocument struct {
	// building is held by the request that makes the document: requests that waited
	// find it made. Each document has a lock of its own, so a description that takes
	// long delays no request for another one.
	building       sync.Mutex
	json, protobuf atomic.Pointer[openapi.Document]
}

// make makes the JSON encoding unless it has been made.
func (d *openAPIDocument) make(describe func() (*openapi.Document, error)) error {
	if d.json.Load() != nil {
		return nil
	}
	d.building.Lock()
	defer d.building.Unlock()
	if d.json.Load() != nil {
		return nil
	}
	defer processors.Computing()()
	document, err := describe()
	if err != nil {
		return err
	}
	d.json.Store(document)
	return nil
}

// makeProtobuf makes the other encoding of a document that has been made, unless it
// has been made too.
func (d *openAPIDocument) makeProtobuf(encode func(*openapi.Document) (*openapi.Document, error)) error {
	if d.protobuf.Load() != nil {
		return nil
	}
	d.building.Lock()
	defer d.building.Unlock()
	if d.protobuf.Load() != nil {
		return nil
	}
	defer processors.Computing()()
	document, err := encode(d.json.Load())
	if err != nil {
		return err
	}
	d.protobuf.Store(document)
	return nil
}

// openAPIDocuments are the descriptions that cover several groups.
type openAPIDocuments struct {
	index, v2 openAPIDocument
}

// openAPIPart is what groups add to the description of version 2. Readers take no lock.
type openAPIPart struct {
	building sync.Mutex // held by the request that makes the part
	made     atomic.Pointer[openapi.Part]
}

// make returns the part, and makes it unless it has been made.
func (p *openAPIPart) make(describe func() (*openapi.Part, error)) (*openapi.Part, error) {
	if part := p.made.Load(); part != nil {
		return part, nil
	}
	p.building.Lock()
	defer p.building.Unlock()
	if part := p.made.Load(); part != nil {
		return part, nil
	}
	defer processors.Computing()()
	part, err := describe()
	if err == nil {
		p.made.Store(part)
	}
	return part, err
}

// builtinPart is the part of the groups that have kinds with Go types.
type builtinPart struct {
	of []*groupVersion
	openAPIPart
}

// described returns what the OpenAPI of a version is made of.
func (v *groupVersion) described() openapi.Group {
	g := openapi.Group{Version: v.GroupVersion}
	for _, res := range v.resources {
		g.Endpoints = append(g.Endpoints, endpointOf(res))
	}
	return g
}

func endpointOf(res *resource.Resource) openapi.Endpoint {
	e := openapi.Endpoint{Resource: res, Verbs: request.VerbsOf(res)}
	for _, sub := range subresourcesOf(res) {
		e.Subresources = append(e.Subresources, openapi.Subresource{
			Name: sub.name, Kind: sub.kind, Body: sub.body, Verbs: sub.verbs,
		})
	}
	return e
}

// makeV3 makes the JSON documents of the given versions that have not been made yet.
// Those of kinds with Go types are made by one builder, because they share models. ctx may end
// the work between two documents.
func makeV3(ctx context.Context, versions ...*groupVersion) error {
	builder := sync.OnceValue(newBuilder)
	for _, v := range versions {
		if err := ctx.Err(); err != nil {
			return err
		}
		describe := func() (*openapi.Document, error) {
			if v.isCustom() {
				return newBuilder().V3Document(v.described()) // shares nothing with others that is not kept
			}
			return builder().V3Document(v.described())
		}
		if err := v.openAPI.make(describe); err != nil {
			return err
		}
	}
	return nil
}

func newBuilder() *openapi.Builder { return openapi.NewBuilder(kubernetesVersion) }

// makeIndex makes the list of all documents of version 3, with the hashes that
// let clients keep them, and so makes all of them.
func (d *documents) makeIndex(ctx context.Context) error {
	return d.openAPI.index.make(func() (*openapi.Document, error) {
		versions := slices.DeleteFunc(d.versions(), func(v *groupVersion) bool { return v.remote != nil })
		if err := makeV3(ctx, versions...); err != nil {
			return nil, err
		}
		type entry struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		}
		paths := make(map[string]entry, len(versions))
		for _, v := range versions {
			place := openapi.Place(v.GroupVersion)
			paths[place] = entry{openAPIURL(place, v.openAPI.json.Load().Hash)}
		}
		for _, v := range d.remoteVersions() {
			if hash := v.remote.OpenAPIHash; hash != "" {
				place := openapi.Place(v.GroupVersion)
				paths[place] = entry{openAPIURL(place, hash)}
			}
		}
		body, err := json.Marshal(map[string]any{"paths": paths})
		if err != nil {
			return nil, err
		}
		return openapi.NewDocument(body)
	})
}

func openAPIURL(place, hash string) string {
	return (&url.URL{Path: "/openapi/v3/" + place, RawQuery: "hash=" + hash}).String()
}

// makeV2 makes the one document of version 2, of parts of which only those are made that have
// changed.
func (d *documents) makeV2() error {
	return d.openAPI.v2.make(func() (*openapi.Document, error) {
		part, err := d.builtin.make(func() (*openapi.Part, error) {
			var groups []openapi.Group
			for _, v := range d.builtin.of {
				groups = append(groups, v.described())
			}
			return newBuilder().BuiltinPart(groups)
		})
		if err != nil {
			return nil, err
		}
		parts := []*openapi.Part{part}
		var others []openapi.Foreign
		for _, v := range d.versions() {
			switch {
			case v.remote != nil:
				// One that cannot be read is left out, as that of a server that has none.
				if document, err := v.remote.OpenAPIV2(); err == nil && document != nil {
					others = append(others, openapi.Foreign{Version: v.GroupVersion, Document: document})
				}
			case v.isCustom():
				part, err := v.part.make(func() (*openapi.Part, error) { return newBuilder().CustomPart(v.described()) })
				if err != nil {
					return nil, err
				}
				parts = append(parts, part)
			}
		}
		return newBuilder().V2Document(parts, others...)
	})
}

// versions returns all versions of all groups, in their order.
func (d *documents) versions() []*groupVersion {
	var list []*groupVersion
	for _, g := range d.groups {
		list = append(list, g.versions...)
	}
	return list
}

// remoteVersions returns what other servers serve.
func (d *documents) remoteVersions() []*groupVersion {
	return slices.DeleteFunc(d.versions(), func(v *groupVersion) bool { return v.remote == nil })
}

func (h *Handler) serveOpenAPIv2(w http.ResponseWriter, r *http.Request) {
	d := h.described()
	if err := d.makeV2(); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	serveOpenAPI(w, r, &d.openAPI.v2, openAPIv2Protobuf, openapi.V2Protobuf)
}

func (h *Handler) serveOpenAPIv3Index(w http.ResponseWriter, r *http.Request) {
	h.indexRead.Store(true)
	d := h.described()
	if err := d.makeIndex(r.Context()); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	writeDocument(w, r, resource.MediaTypeJSON, d.openAPI.index.json.Load())
}

// serveOpenAPIv3 answers /openapi/v3/api/v1 and /openapi/v3/apis/GROUP/VERSION.
// With the hash of the content in the URL the answer may be kept for ever; with
// another hash the client is sent to the right one.
func (h *Handler) serveOpenAPIv3(w http.ResponseWriter, r *http.Request) {
	place := strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/openapi/v3/")
	v := h.described().place(place)
	if v == nil || v.remote != nil {
		encoding.WriteError(w, r, status.NoSuchPath())
		return
	}
	if err := makeV3(r.Context(), v); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	document := v.openAPI.json.Load()
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != document.Hash {
			http.Redirect(w, r, openAPIURL(place, document.Hash), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	serveOpenAPI(w, r, v.openAPI, openAPIv3Protobuf, openapi.V3Protobuf)
}

// place returns the version whose document is at a path below /openapi/v3/, or nil.
func (d *documents) place(path string) *groupVersion {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return d.version(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis" && parts[1] != "":
		return d.version(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil
}

// serveOpenAPI answers with a document in the encoding that the client
// prefers. Its JSON has been made.
func serveOpenAPI(w http.ResponseWriter, r *http.Request, d *openAPIDocument, binary string, encode func(*openapi.Document) (*openapi.Document, error)) {
	switch documentType(r, binary) {
	case resource.MediaTypeJSON:
		writeDocument(w, r, resource.MediaTypeJSON, d.json.Load())
	case binary:
		if err := d.makeProtobuf(encode); err != nil {
			encoding.WriteError(w, r, err)
			return
		}
		writeDocument(w, r, binary, d.protobuf.Load())
	default:
		encoding.WriteError(w, r, status.NotAcceptable(resource.MediaTypeJSON+", "+binary))
	}
}

// documentType returns the media type to answer with: JSON, binary, or "" if
// the client accepts neither.
func documentType(r *http.Request, binary string) string {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return resource.MediaTypeJSON
	}
	for _, clause := range encoding.ParseAccept(strings.ReplaceAll(header, "@", ".")) {
		switch clause.MediaType {
		case resource.MediaTypeJSON, "application/*", "*/*":
			return resource.MediaTypeJSON
		case binary:
			return binary
		}
	}
	return ""
}

// writeDocument answers with a document that clients keep. A client that has this
// version of it gets a 304.
func writeDocument(w http.ResponseWriter, r *http.Request, contentType string, d *openapi.Document) {
	r = withoutRanges(r)
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("ETag", `"`+d.Hash+`"`)
	header.Set("Vary", "Accept, Accept-Encoding")
	if encoding.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		http.ServeContent(w, r, "", d.Made, bytes.NewReader(d.Gzip))
		return
	}
	http.ServeContent(w, r, "", d.Made, d.Reader(runqueue.FromContext(r.Context()).Yield))
}

// withoutRanges returns the request for all of a document, as a server may answer one for
// parts of it. Each part would be uncompressed from the beginning, and the headers of
// one request can ask for twenty thousand.
func withoutRanges(r *http.Request) *http.Request {
	if r.Header.Get("Range") == "" {
		return r
	}
	whole := *r
	whole.Header = r.Header.Clone()
	whole.Header.Del("Range")
	whole.Header.Del("If-Range")
	return &whole
}
