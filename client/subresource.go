package client

import (
	"context"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// SubResource is a subresource of the objects of an endpoint. Its type may be
// another than the object's: Scale, Binding, Eviction, TokenRequest. Package
// subresource has typed calls for these.
type SubResource[T Object] struct {
	parent Resource[T]
	name   string
}

// SubResource returns a subresource of the objects of an endpoint, by name:
// "scale", "binding", "eviction", "token". Without a name, all its methods return an error:
// they would read and write the object itself.
func (r Resource[T]) SubResource(name string) SubResource[T] {
	if name == "" && r.err == nil {
		r.err = errors.New("the subresource's name is empty")
	}
	return SubResource[T]{r, name}
}

// Get reads the subresource of an object into a value of its type, in place of what that held.
func (s SubResource[T]) Get(ctx context.Context, object string, into runtime.Object, opts metav1.GetOptions) error {
	return s.parent.into(ctx, call{verb: "get", method: http.MethodGet, name: object, named: true, subresource: s.name, query: &opts}, into)
}

// Create posts a body. The answer, such as the token of a TokenRequest, is stored in
// body, in place of what it held. An answer that is empty, a Status, or neither JSON nor protobuf is a
// DecodeError, although its HTTP status says that the server, or a proxy before it,
// accepted the request. A binding and an eviction have no answer but a Status: for
// these 201 is a success, whatever comes with it, and body stays as it is.
func (s SubResource[T]) Create(ctx context.Context, object string, body runtime.Object, opts metav1.CreateOptions) error {
	q := call{verb: "create", method: http.MethodPost, name: object, named: true, subresource: s.name, query: &opts, body: body}
	if s.name == "binding" || s.name == "eviction" {
		return s.parent.accept(ctx, q)
	}
	return s.parent.into(ctx, q, body)
}

// Update replaces the subresource of an object and stores the server's answer
// in obj, in place of what it held.
func (s SubResource[T]) Update(ctx context.Context, object string, obj runtime.Object, opts metav1.UpdateOptions) error {
	return s.parent.into(ctx, call{verb: "update", method: http.MethodPut, name: object, named: true, subresource: s.name, query: &opts, body: obj}, obj)
}

// Patch changes the subresource of an object and stores the server's answer in
// into, in place of what it held.
func (s SubResource[T]) Patch(ctx context.Context, object string, kind types.PatchType, data []byte, into runtime.Object, opts metav1.PatchOptions) error {
	return s.parent.into(ctx, call{verb: "patch", method: http.MethodPatch, name: object, named: true, subresource: s.name,
		query: &opts, raw: data, contentType: string(kind)}, into)
}

// Stream reads what is no object: the log of a container, or what a node serves
// behind its proxy. opts goes into the query: a *corev1.PodLogOptions for instance;
// nil: nothing. The reader ends with ctx, or when it is closed, which must be done.
func (s SubResource[T]) Stream(ctx context.Context, object string, opts runtime.Object) (io.ReadCloser, error) {
	q := call{verb: "get", method: http.MethodGet, name: object, named: true, subresource: s.name, stream: true}
	if opts != nil {
		q.query = opts
	}
	req, err := s.parent.request(q)
	if err != nil {
		return nil, err
	}
	req.protobuf = false
	ans, err := s.parent.client.do(ctx, req)
	if err != nil {
		return nil, s.parent.explain(ctx, q, err)
	}
	return stream{ctx, ans}, nil
}

// stream is an answer of which the caller makes what it likes.
type stream struct {
	ctx    context.Context // of the request, for the cause of its end
	answer *answer
}

func (s stream) Read(p []byte) (int, error) {
	n, err := s.answer.Read(p)
	if err == nil {
		return n, nil
	}
	// The end of the context tells the server to end its answer, and that may arrive
	// before the connection is closed.
	if err == io.EOF && s.ctx.Err() == nil { //nolint:errorlint // readers return io.EOF itself
		return n, io.EOF
	}
	return n, contextError(s.ctx, err)
}

func (s stream) Close() error {
	s.answer.close()
	return nil
}
