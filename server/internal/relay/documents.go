package relay

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// documents has what the upstream says of its API: discovery, OpenAPI and the version. They
// are the same for every user. For each request the upstream is asked whether its document
// has changed, once for all requests that wait at that moment, so that a new kind is visible
// through the relay as soon as it is at the upstream. A document that has an ETag and has not
// changed is not sent again. While the upstream does not answer, the document that it sent
// last is served, and declared as old as it is.
type documents struct {
	relay *Relay

	mu   sync.Mutex // guards the fields below
	held map[documentKey]*document
	size int // of the bodies, in bytes
	// empty is how many of those that are held have no content yet.
	empty int

	downloads chan struct{} // has a value for each document that is being received
}

// documentKey says which document it is, in which form.
type documentKey struct{ path, query, accept string }

// document is one document. It is in documents.held while it is asked for, or has content.
type document struct {
	of       *documents
	key      documentKey
	question coalesced[*documentContent]
	latest   atomic.Pointer[documentContent] // nil before the first answer
	lastUsed time.Time                       // guarded by documents.mu
}

// documentContent is what the upstream has answered. It is not changed.
type documentContent struct {
	header  http.Header // of those in documentHeaders, what the answer had
	body    []byte
	gzipped func() []byte
	asOf    time.Time // the upstream had this document then
}

const (
	// maxDocuments and maxDocumentsBytes bound what is kept of all documents. A document
	// that does not fit takes the place of those that were not used for longest.
	maxDocuments, maxDocumentsBytes = 4096, 128 << 20
	// maxDocumentBytes bounds one of them. A larger one is passed on.
	maxDocumentBytes = 32 << 20
	// maxEmptyDocuments bounds those that are asked for and that the relay does not have, and
	// maxDownloads those that are received at the same time. Requests for more are passed on.
	maxEmptyDocuments, maxDownloads = 256, 8
	// documentPatience is how long a request waits for the upstream's word on a document
	// that the relay has. An upstream that answers does so long before.
	documentPatience = time.Second
	// documentTimeout bounds one question about a document.
	documentTimeout = 20 * time.Second
)

// documentHeaders are those of the upstream that an answer from memory has, too.
var documentHeaders = []string{"Content-Type", "Etag", "Last-Modified", "Vary", "Cache-Control", "Expires"}

// aggregated is what asks for a version of the discovery of all groups in one document.
func aggregated(version string) string {
	return "application/json;g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList"
}

// documentAccepts are the headers Accept by which documents are kept, without spaces: those
// that client-go, kubectl, the aggregation layer and the Levelwire client send. A client could
// write others in any number of ways.
var documentAccepts = []string{
	"", "*/*", "application/json", "application/json,*/*",
	"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf,*/*",
	aggregated("v2"), aggregated("v2") + ",application/json",
	aggregated("v2beta1"), aggregated("v2beta1") + ",application/json",
	aggregated("v2") + "," + aggregated("v2beta1"), aggregated("v2") + "," + aggregated("v2beta1") + ",application/json",
	aggregated("v2") + ";profile=nopeer," + aggregated("v2") + ",application/json",
	aggregated("v2") + ";profile=nopeer," + aggregated("v2") + "," + aggregated("v2beta1") + ",application/json",
	"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
	"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
}

// documentAccept returns which of them a request has.
func documentAccept(header http.Header) (accept string, ok bool) {
	accept = strings.ReplaceAll(strings.Join(header.Values("Accept"), ","), " ", "")
	return accept, slices.Contains(documentAccepts, accept)
}

// MayDescribe implements apiserver.Upstream.
func (r *Relay) MayDescribe(req *http.Request) bool {
	if req.Method != http.MethodGet || len(req.Header.Values("Upgrade")) > 0 {
		return false
	}
	_, ok := documentKeyOf(req)
	return ok
}

// documentKeyOf returns which document a request is for. Users choose the path, and the relay
// asks with credentials of its own: paths that another server could resolve to a different
// one, and parameters that the relay does not know, are left to the upstream.
func documentKeyOf(req *http.Request) (key documentKey, ok bool) {
	path := req.URL.Path
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, part := range parts {
		if len(validation.IsDNS1123Subdomain(part)) > 0 {
			return key, false
		}
	}
	openAPIv3 := len(parts) >= 2 && parts[0] == "openapi" && parts[1] == "v3"
	switch {
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3, path == versionPath, path == "/openapi/v2":
	case openAPIv3 && len(parts) <= 5:
	default:
		return key, false
	}
	var hash string
	for name, values := range req.URL.Query() {
		switch {
		case name == "timeout": // client-go's discovery sends it, and the answer does not depend on it
		case name == "hash" && openAPIv3 && len(values) == 1 && len(values[0]) <= validation.DNS1123LabelMaxLength*3:
			hash = url.Values{"hash": values}.Encode()
		default:
			return key, false
		}
	}
	accept, ok := documentAccept(req.Header)
	return documentKey{path, hash, accept}, ok
}

// Describe implements apiserver.Upstream.
func (r *Relay) Describe(w http.ResponseWriter, req *http.Request) error {
	key, ok := documentKeyOf(req)
	if !ok {
		return apiserver.ErrNotCached
	}
	d := r.documents.use(key)
	if d == nil {
		return apiserver.ErrNotCached
	}
	content, err := d.get(req.Context())
	if err != nil {
		return err
	}
	if key.path == versionPath {
		r.declareStaleness(w.Header())
	}
	content.write(w, req, r.contact.now())
	return nil
}

// use returns a document, which is entered if it is not there. It returns nil if there are
// too many that are asked for just now.
func (d *documents) use(key documentKey) *document {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held[key]
	if held == nil {
		if d.empty >= maxEmptyDocuments {
			return nil
		}
		held = &document{of: d, key: key}
		d.held[key] = held
		d.empty++
	}
	held.lastUsed = d.relay.contact.now()
	return held
}

// evict removes the document that was not used for longest. It returns false if there is
// none that has content. The lock is held.
func (d *documents) evict() bool {
	var oldest *document
	for _, held := range d.held {
		if held.latest.Load() != nil && (oldest == nil || held.lastUsed.Before(oldest.lastUsed)) {
			oldest = held
		}
	}
	if oldest == nil {
		return false
	}
	d.remove(oldest)
	return true
}

// remove forgets a document. The lock is held.
func (d *documents) remove(held *document) {
	if d.held[held.key] != held {
		return
	}
	delete(d.held, held.key)
	if content := held.latest.Load(); content != nil {
		d.size -= len(content.body)
	} else {
		d.empty--
	}
}

// forget removes a document that the upstream does not have.
func (d *documents) forget(held *document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(held)
	held.latest.Store(nil)
}

// keep stores new content of a document.
func (d *documents) keep(held *document, content *documentContent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[held.key] != held {
		return // it was removed meanwhile
	}
	before := held.latest.Swap(content)
	d.size += len(content.body)
	if before != nil {
		d.size -= len(before.body)
	} else {
		d.empty--
	}
	for (d.size > maxDocumentsBytes || len(d.held)-d.empty > maxDocuments) && d.evict() {
		continue
	}
}

// get returns the document as the upstream has it after the call. If the upstream does not
// answer, that is the content of before.
func (d *document) get(ctx context.Context) (*documentContent, error) {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	q := d.question.ask(d.of.relay.wait.Go, d.askUpstream)
	var patience <-chan time.Time
	if d.latest.Load() != nil {
		timer := time.NewTimer(documentPatience)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-q.done:
		return q.answer, q.err
	case <-patience:
		if content := d.latest.Load(); content != nil {
			d.of.relay.counts.staleDocuments.Add(1)
			return content, nil
		}
		return nil, apiserver.ErrNotCached
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askUpstream returns the document as the upstream has it now, or as it had it before if the
// upstream does not answer. It fails with apiserver.ErrNotCached if the upstream answers with
// something else.
func (d *document) askUpstream() (*documentContent, error) {
	r := d.of.relay
	ctx, cancel := context.WithTimeout(r.lifetime(), documentTimeout)
	defer cancel()
	before := d.latest.Load()
	header := http.Header{}
	if d.key.accept != "" {
		header.Set("Accept", d.key.accept)
	}
	if before != nil {
		if tag := before.header.Get("Etag"); tag != "" {
			header.Set("If-None-Match", tag)
		}
	}
	path := (&url.URL{Path: d.key.path, RawQuery: d.key.query}).String()
	r.counts.documentQuestions.Add(1)
	asked := r.contact.now()
	response, err := r.client.Raw(ctx, client.RawRequest{Path: path, Header: header})
	if err != nil {
		return d.unanswered(before, err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read, or is not needed
	asked = asked.Add(-declaredAge(response.Header))
	switch code := response.StatusCode; {
	case code == http.StatusNotModified && before != nil:
		same := *before
		same.asOf = asked
		d.of.keep(d, &same)
		return &same, nil
	case code == http.StatusOK:
		select {
		case d.of.downloads <- struct{}{}:
		case <-ctx.Done():
			if before != nil {
				return d.unanswered(before, ctx.Err())
			}
			d.of.forget(d)
			return nil, apiserver.ErrNotCached
		}
		content, err := readDocument(response)
		<-d.of.downloads
		if err != nil {
			return d.unanswered(before, err)
		}
		if len(content.body) > maxDocumentBytes {
			break
		}
		content.asOf = asked
		d.of.keep(d, content)
		return content, nil
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		if before != nil {
			return d.unanswered(before, fmt.Errorf("the upstream answers with %s", response.Status))
		}
		return nil, apiserver.ErrNotCached // the client gets the same answer
	}
	d.of.forget(d)
	return nil, apiserver.ErrNotCached
}

// maxAge is the greatest age that is declared, in seconds: it means that it is not known.
const maxAge = 365 * 24 * 60 * 60

// declaredAge returns how old an answer of the upstream says that it is.
func declaredAge(header http.Header) time.Duration {
	age, _ := strconv.Atoi(header.Get("Age")) // what cannot be read is as if it were not there
	return time.Duration(min(max(age, 0), maxAge)) * time.Second
}

// unanswered returns what the relay has of a document, or the error for clients.
func (d *document) unanswered(before *documentContent, err error) (*documentContent, error) {
	if before != nil {
		d.of.relay.counts.staleDocuments.Add(1)
		return before, nil
	}
	d.of.forget(d)
	return nil, apierrors.NewServiceUnavailable("the upstream of the relay does not answer: " + err.Error())
}

// readDocument reads the answer of the upstream, up to more than maxDocumentBytes.
func readDocument(response *http.Response) (*documentContent, error) {
	content := &documentContent{header: http.Header{}}
	for _, name := range documentHeaders {
		if values := response.Header.Values(name); len(values) > 0 {
			content.header[name] = slices.Clone(values)
		}
	}
	var err error
	if content.body, err = io.ReadAll(io.LimitReader(response.Body, maxDocumentBytes+1)); err != nil {
		return nil, err
	}
	content.gzipped = sync.OnceValue(func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(content.body) // a buffer does not fail
		_ = z.Close()
		return b.Bytes()
	})
	return content, nil
}

// write answers a request.
func (c *documentContent) write(w http.ResponseWriter, r *http.Request, now time.Time) {
	header := w.Header()
	maps.Copy(header, c.header)
	header.Set("Age", strconv.FormatInt(int64(max(now.Sub(c.asOf), 0)/time.Second), 10))
	if tag := c.header.Get("Etag"); tag != "" && slices.ContainsFunc(strings.Split(strings.Join(r.Header.Values("If-None-Match"), ","), ","),
		func(has string) bool {
			return strings.TrimPrefix(strings.TrimSpace(has), "W/") == strings.TrimPrefix(tag, "W/")
		}) {
		header.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := c.body
	if len(body) >= encoding.CompressFrom && encoding.AcceptsGzip(r) {
		body = c.gzipped()
		header.Set("Content-Encoding", "gzip")
		if !strings.Contains(strings.Join(header.Values("Vary"), ","), "Accept-Encoding") {
			header["Vary"] = append(slices.Clone(header["Vary"]), "Accept-Encoding")
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have gone
}
