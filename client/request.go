package client

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/internal/filteredlist"
)

// request is one call of a verb, before it is put into bytes: those depend on
// whether the server speaks protobuf.
type request struct {
	verb, method string
	path         string // below the server's base
	query        url.Values
	gvr          schema.GroupVersionResource
	name         string // for errors

	form     codec.Form
	list     bool // the answer is a list or a stream of events
	protobuf bool // the answer, and a body that can, may be protobuf

	body        runtime.Object // nil: raw
	raw         []byte
	contentType string // of raw
	scheme      *scheme.Scheme

	stream bool // the answer is no object: bytes of any media type, perhaps without an end
	// accepted: 201 says everything, and the answer may be of any media type.
	accepted bool

	// Of Client.Raw: the path as it is escaped, its query, headers, and that every
	// status is an answer.
	escaped, rawQuery string
	header            http.Header
	anyStatus         bool
}

// String names the request in errors: "list pods", "GET /version".
func (q *request) String() string {
	if q.gvr.Resource == "" {
		return q.method + " " + q.path
	}
	return q.verb + " " + q.gvr.Resource
}

// call says which request a verb makes of an endpoint.
type call struct {
	verb, method string
	name         string
	named        bool // name must not be empty
	creates      bool // body is a new object, which has a name or asks for one
	subresource  string
	query        any // a pointer to an options struct of metav1; nil: none
	body         runtime.Object
	raw          []byte
	contentType  string
	list         bool
	stream       bool
}

// request checks a call and fills in what the endpoint knows.
func (r Resource[T]) request(q call) (*request, error) {
	if err := r.check(q); err != nil {
		return nil, r.refused(q.verb, err)
	}
	path, err := r.path(q)
	if err != nil {
		return nil, r.refused(q.verb, err)
	}
	out := &request{
		verb: q.verb, method: q.method, path: path, gvr: r.gvr, name: q.name,
		form: r.codec.Form(), list: q.list, protobuf: r.codec.CanProtobuf(),
		body: r.withKind(q), raw: q.raw, contentType: q.contentType, scheme: r.client.Scheme(), stream: q.stream,
	}
	if q.query != nil {
		if out.query, err = queryparams.Convert(q.query); err != nil {
			return nil, r.refused(q.verb, fmt.Errorf("options: %w", err))
		}
	}
	if r.asksForVisible(q.verb) {
		out.query.Set(filteredlist.Parameter, filteredlist.Watch)
	}
	r.writes.set(out)
	return out, nil
}

// path is where the endpoint is, below the server's base.
func (r Resource[T]) path(q call) (string, error) {
	var b strings.Builder
	if r.gvr.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/")
		b.WriteString(r.gvr.Group)
		b.WriteByte('/')
	}
	b.WriteString(r.gvr.Version)
	if r.namespace != "" {
		if reasons := validation.NameIsDNSLabel(r.namespace, false); len(reasons) > 0 {
			return "", fmt.Errorf("namespace %q: no namespace has such a name: %s", r.namespace, strings.Join(reasons, ", "))
		}
		b.WriteString("/namespaces/")
		b.WriteString(r.namespace)
	}
	b.WriteByte('/')
	b.WriteString(r.gvr.Resource)
	if q.name != "" {
		if err := segment("name", q.name); err != nil {
			return "", err
		}
		b.WriteByte('/')
		b.WriteString(q.name)
	}
	if q.subresource != "" {
		if parts := strings.Split(q.subresource, "/"); slices.Contains(parts, ".") || slices.Contains(parts, "..") {
			return "", fmt.Errorf("subresource %q may not have \".\" or \"..\" in its path", q.subresource)
		}
		b.WriteByte('/')
		b.WriteString(q.subresource)
	}
	return b.String(), nil
}

// segment refuses what would make a URL point elsewhere.
func segment(what, s string) error {
	if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
		return fmt.Errorf("%s %q may not be \".\", \"..\" or contain \"/\" or \"%%\"", what, s)
	}
	return nil
}

// http puts the request into bytes. protobufBody and protobufAnswer are whether it may
// use protobuf in either direction.
func (q *request) http(ctx context.Context, base *url.URL, protobufBody, protobufAnswer bool) (*http.Request, int64, error) {
	data, contentType := q.raw, q.contentType
	if q.body != nil {
		var err error
		if data, contentType, err = codec.Encode(q.scheme, q.body, protobufBody); err != nil {
			return nil, 0, err
		}
	}
	u := *base
	if u.RawQuery = q.query.Encode(); q.verb == "raw" {
		u.RawPath, u.RawQuery = base.EscapedPath()+q.escaped, q.rawQuery
	}
	u.Path += q.path
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), bodyReader(data))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", codec.AcceptFor(q.form, q.list, protobufAnswer))
	if q.stream {
		req.Header.Set("Accept", "application/json, */*") // a refusal is JSON
	}
	if q.verb == "watch" || q.stream {
		// Compression would keep what has been sent in its window.
		req.Header.Set("Accept-Encoding", "identity")
	}
	if data != nil && contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if q.verb == "raw" {
		req.Header = q.header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
	}
	return req, int64(len(data)), nil
}

// expects reports whether an answer of a media type can be one to the request.
func (q *request) expects(contentType string) bool {
	switch q.verb {
	case "raw":
		return true
	case "difference":
		if media, _, err := mime.ParseMediaType(contentType); err == nil && media == difference.MediaType {
			return true
		}
	}
	return q.stream || codec.EncodingOf(contentType) != codec.EncodingUnknown
}

// isOtherSuccess reports whether a successful answer has a status that is none of a list: servers
// answer lists with 200. One of 206 is a part, what is called a list by something between may be its own.
func (q *request) isOtherSuccess(code int) bool {
	return q.verb == "list" && code != http.StatusOK && code < http.StatusMultipleChoices
}

// joinSubresources makes a path of them.
func joinSubresources(names []string) string { return strings.Join(names, "/") }

// object sends a call whose answer is one object.
func (r Resource[T]) object(ctx context.Context, q call) (T, error) {
	var none T
	data, enc, err := r.roundTrip(ctx, q)
	if err != nil {
		return none, err
	}
	decode := r.codec.Decode
	if q.ofOtherKind() {
		decode = r.codec.DecodeAny
	}
	obj, err := decode(enc, data)
	if err == nil {
		err = q.checkName(obj)
	}
	if err != nil {
		return none, q.undecodable(r.gvr, err)
	}
	return obj, nil
}

// ofOtherKind reports whether the answer may be an object of another kind than the resource's.
func (q call) ofOtherKind() bool { return q.subresource != "" && q.subresource != "status" }

// checkName returns an error if the answer has no name and was asked for by one: {} is
// what something answers that answers everything. What subresources answer may have none.
func (q call) checkName(obj Object) error {
	if !q.named || q.ofOtherKind() || obj.GetName() != "" {
		return nil
	}
	return errors.New("the object has no name")
}

// into sends a call whose answer is an object of another type. Nothing, or a Status,
// in its place is a DecodeError: into would stay as it was.
func (r Resource[T]) into(ctx context.Context, q call, into runtime.Object) error {
	// The answer is not in the endpoint's form, and not always in protobuf.
	req, err := r.request(q)
	if err != nil {
		return err
	}
	req.form, req.protobuf = codec.FormTyped, req.protobuf && codec.CanUnmarshalProtobuf(into)
	data, enc, err := r.client.readAll(ctx, req)
	if err != nil {
		return r.explain(ctx, q, err)
	}
	if len(data) == 0 {
		return q.undecodable(r.gvr, errors.New("the answer is empty"))
	}
	if _, wanted := into.(*metav1.Status); !wanted && enc != codec.EncodingUnknown && codec.KindOf(enc, data) == "Status" {
		return q.undecodable(r.gvr, errors.New("the answer is a Status"))
	}
	if err := decodeInPlaceOf(into, enc, data); err != nil {
		return q.undecodable(r.gvr, err)
	}
	return nil
}

// decodeInPlaceOf decodes an object and stores it in into, which a caller may have used before:
// a decoder alone would keep there what the answer leaves out, and protobuf's adds to lists.
// What into points to may belong to others, and is not written to.
func decodeInPlaceOf(into runtime.Object, enc codec.Encoding, data []byte) error {
	held := reflect.ValueOf(into)
	if held.Kind() != reflect.Pointer || held.IsNil() {
		return codec.DecodeInto(enc, data, into)
	}
	decoded := reflect.New(held.Type().Elem())
	obj := decoded.Interface().(runtime.Object)
	if kind := into.GetObjectKind().GroupVersionKind(); !kind.Empty() { // protobuf does not decode it
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	if err := codec.DecodeInto(enc, data, obj); err != nil {
		return err
	}
	held.Elem().Set(decoded.Elem())
	return nil
}

// undecodable says that the answer, which is one object, was not understood.
func (q call) undecodable(gvr schema.GroupVersionResource, err error) error {
	return fmt.Errorf("%s %s %q: %w", q.verb, gvr.Resource, q.name, &DecodeError{What: "object", Err: err})
}

// discard sends a call whose answer matters only if it is an error.
func (r Resource[T]) discard(ctx context.Context, q call) error {
	_, _, err := r.roundTrip(ctx, q)
	return err
}

// accept is discard for a create whose answer is of no use, so that it may be
// anything once the server has said 201: the write has succeeded.
func (r Resource[T]) accept(ctx context.Context, q call) error {
	req, err := r.request(q)
	if err != nil {
		return err
	}
	req.accepted = true
	_, _, err = r.client.readAll(ctx, req)
	return r.explain(ctx, q, err)
}

func (r Resource[T]) roundTrip(ctx context.Context, q call) ([]byte, codec.Encoding, error) {
	req, err := r.request(q)
	if err != nil {
		return nil, codec.EncodingUnknown, err
	}
	data, enc, err := r.client.readAll(ctx, req)
	return data, enc, r.explain(ctx, q, err)
}

// List reads everything that opts selects, or one page of it. Objects are
// decoded while the answer arrives.
func (r Resource[T]) List(ctx context.Context, opts metav1.ListOptions) (*List[T], error) {
	opts.Watch = false
	q := call{verb: "list", method: http.MethodGet, query: &opts, list: true}
	req, err := r.request(q)
	if err != nil {
		return nil, err
	}
	ans, err := r.client.do(ctx, req)
	if err != nil {
		return nil, r.explainVisible(q.verb, r.explain(ctx, q, err))
	}
	defer ans.close()
	if err := r.confirmVisible(q.verb, ans.resp.Header, opts.Continue == ""); err != nil {
		return nil, err
	}
	list, err := decodeList(r.codec, ans.encoding(), codec.NewSource(ans, r.client.opts.MaxFrameBytes))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.gvr.Resource, contextError(ctx, err))
	}
	ans.drain()
	return list, nil
}

// decodeList reads a list, and says of an error whether it is the connection's or
// one of what came over it.
func decodeList[T Object](c *codec.Codec[T], enc codec.Encoding, src *codec.Source) (*List[T], error) {
	list, err := c.DecodeList(enc, src)
	if err != nil {
		return nil, streamError(src, "list", err)
	}
	return (*List[T])(list), nil
}

// streamError makes of what a decoder met within a list or an event the error of
// the connection, if that has ended, or else a DecodeError.
func streamError(src *codec.Source, what string, err error) error {
	if ended := src.ReadError(); ended != nil {
		return ended
	}
	return &DecodeError{What: what, Err: err}
}

// check refuses calls that a server would answer as if the object did not exist: a
// URL without the namespace, or with one too many, is that of nothing. It knows the
// scope of what is in the scheme; other resources are only checked for names.
func (r Resource[T]) check(q call) error {
	if err := r.usable(); err != nil {
		return err
	}
	switch {
	case q.named && q.name == "":
		return errors.New("the object's name is empty")
	case q.creates && r.mapping.Resource != "" && !r.mapping.Unnamed && !hasName(q.body):
		return errors.New("the object has neither a name nor a generateName")
	case r.mapping.Scope == scheme.Cluster && r.namespace != "":
		return fmt.Errorf("namespace %q: %s is cluster-scoped: do not call Namespace, and leave metadata.namespace of objects empty", r.namespace, r.mapping.Kind.Kind)
	case r.mapping.Scope == scheme.Namespaced && r.namespace == "" && q.needsNamespace():
		return fmt.Errorf("no namespace is given, and %s is namespaced: call Namespace, or set metadata.namespace of objects to write", r.mapping.Kind.Kind)
	}
	return nil
}

// usable returns why the endpoint has no URLs, nil if it has.
func (r Resource[T]) usable() error {
	if r.err == nil && r.client == nil {
		return errors.New("the client is nil: make one with client.New")
	}
	return r.err
}

// needsNamespace returns whether the call is for one namespace: lists and watches may
// be for all of them.
func (q call) needsNamespace() bool {
	return q.named || q.creates || q.verb == "deletecollection"
}

// hasName returns whether an object has a name or asks the server for one.
func hasName(body runtime.Object) bool {
	obj, ok := body.(metav1.Object)
	return !ok || obj.GetName() != "" || obj.GetGenerateName() != ""
}

// withKind returns the body of a call; that of an unstructured object with the
// endpoint's kind if it has none. It does not change the caller's.
func (r Resource[T]) withKind(q call) runtime.Object {
	u, ok := q.body.(*unstructured.Unstructured)
	if !ok || q.ofOtherKind() || r.mapping.Kind.Kind == "" || u.GetKind() != "" {
		return q.body
	}
	sent := &unstructured.Unstructured{Object: make(map[string]any, len(u.Object)+2)}
	for name, value := range u.Object {
		sent.Object[name] = value
	}
	sent.SetGroupVersionKind(r.mapping.Kind)
	return sent
}
