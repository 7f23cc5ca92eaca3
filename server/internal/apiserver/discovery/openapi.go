package discovery

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
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
	json, protobuf atomic.Pointer[openapi.Document]
}

// openAPIDocuments are the descriptions that cover several groups.
type openAPIDocuments struct {
	index, v2 openAPIDocument
}

// openAPIBuild lets one request build at a time: requests that waited find their
// document made.
type openAPIBuild struct{ mu sync.Mutex }

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

// v3 makes the documents of the given versions that have not been made yet.
func (b *openAPIBuild) v3(versions ...*groupVersion) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var builder *openapi.Builder
	for _, v := range versions {
		if v.openAPI.json.Load() != nil {
			continue
		}
		if builder == nil {
			builder = openapi.NewBuilder(kubernetesVersion)
		}
		document, err := builder.V3Document(v.described())
		if err != nil {
			return err
		}
		v.openAPI.json.Store(document)
	}
	return nil
}

// index makes the list of all documents of version 3, with the hashes that
// let clients keep them, and so makes all of them.
func (b *openAPIBuild) index(d *documents) error {
	var versions []*groupVersion
	for _, g := range d.groups {
		versions = append(versions, g.versions...)
	}
	if err := b.v3(versions...); err != nil {
		return err
	}
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := make(map[string]entry, len(versions))
	for _, v := range versions {
		place := openapi.Place(v.GroupVersion)
		paths[place] = entry{openAPIURL(place, v.openAPI.json.Load().Hash)}
	}
	body, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		return err
	}
	document, err := openapi.NewDocument(body)
	if err != nil {
		return err
	}
	d.openAPI.index.json.Store(document)
	return nil
}

func openAPIURL(place, hash string) string {
	return (&url.URL{Path: "/openapi/v3/" + place, RawQuery: "hash=" + hash}).String()
}

// v2 makes the one document of version 2.
func (b *openAPIBuild) v2(d *documents) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.openAPI.v2.json.Load() != nil {
		return nil
	}
	var groups []openapi.Group
	for _, g := range d.groups {
		for _, v := range g.versions {
			groups = append(groups, v.described())
		}
	}
	document, err := openapi.NewBuilder(kubernetesVersion).V2Document(groups)
	if err != nil {
		return err
	}
	d.openAPI.v2.json.Store(document)
	return nil
}

// protobuf makes the other encoding of a document that has been made.
func (b *openAPIBuild) protobuf(d *openAPIDocument, encode func(*openapi.Document) (*openapi.Document, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.protobuf.Load() != nil {
		return nil
	}
	document, err := encode(d.json.Load())
	if err != nil {
		return err
	}
	d.protobuf.Store(document)
	return nil
}

func (h *Handler) serveOpenAPIv2(w http.ResponseWriter, r *http.Request) {
	d := h.described()
	if d.openAPI.v2.json.Load() == nil {
		if err := h.openAPI.v2(d); err != nil {
			encoding.WriteError(w, r, err)
			return
		}
	}
	h.serveOpenAPI(w, r, &d.openAPI.v2, openAPIv2Protobuf, openapi.V2Protobuf)
}

func (h *Handler) serveOpenAPIv3Index(w http.ResponseWriter, r *http.Request) {
	d := h.described()
	if d.openAPI.index.json.Load() == nil {
		if err := h.openAPI.index(d); err != nil {
			encoding.WriteError(w, r, err)
			return
		}
	}
	writeDocument(w, r, resource.MediaTypeJSON, d.openAPI.index.json.Load())
}

// serveOpenAPIv3 answers /openapi/v3/api/v1 and /openapi/v3/apis/GROUP/VERSION.
// With the hash of the content in the URL the answer may be kept for ever; with
// another hash the client is sent to the right one.
func (h *Handler) serveOpenAPIv3(w http.ResponseWriter, r *http.Request) {
	place := strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/openapi/v3/")
	v := h.described().place(place)
	if v == nil {
		encoding.WriteError(w, r, status.NoSuchPath())
		return
	}
	if v.openAPI.json.Load() == nil {
		if err := h.openAPI.v3(v); err != nil {
			encoding.WriteError(w, r, err)
			return
		}
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
	h.serveOpenAPI(w, r, &v.openAPI, openAPIv3Protobuf, openapi.V3Protobuf)
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
func (h *Handler) serveOpenAPI(w http.ResponseWriter, r *http.Request, d *openAPIDocument, binary string, encode func(*openapi.Document) (*openapi.Document, error)) {
	switch documentType(r, binary) {
	case resource.MediaTypeJSON:
		writeDocument(w, r, resource.MediaTypeJSON, d.json.Load())
	case binary:
		if d.protobuf.Load() == nil {
			if err := h.openAPI.protobuf(d, encode); err != nil {
				encoding.WriteError(w, r, err)
				return
			}
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
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("ETag", `"`+d.Hash+`"`)
	header.Set("Vary", "Accept, Accept-Encoding")
	if encoding.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		http.ServeContent(w, r, "", d.Made, bytes.NewReader(d.Gzip))
		return
	}
	content, err := d.Content()
	if err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	http.ServeContent(w, r, "", d.Made, bytes.NewReader(content))
}
