package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// errRedirected refuses to send clients, with their credentials, elsewhere.
var errRedirected = errors.New("the aggregated server answered with a redirection, which is not passed on")

// ownHeaders are those of an answer that this server sets itself.
var ownHeaders = []string{"Audit-Id", inflight.FlowSchemaHeader, inflight.PriorityLevelHeader}

// receive takes the head of the answer.
func (f *forwarding) receive(w http.ResponseWriter, response *http.Response) error {
	for _, name := range ownHeaders {
		response.Header.Del(name)
	}
	if code := response.StatusCode; code >= 300 && code < 400 && response.Header.Get("Location") != "" &&
		!strings.HasPrefix(response.Header.Get("Location"), OpenAPIv3Path) {
		return errRedirected
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		record := request.RecordFrom(response.Request.Context())
		record.Code = http.StatusSwitchingProtocols
		if record.Audit != nil {
			record.Audit.Started(http.StatusSwitchingProtocols)
		}
		return nil
	}
	response.Body = &watchedBody{body: response.Body, of: f}
	return nil
}

// watchedBody notes whether the body of an answer breaks off.
type watchedBody struct {
	body io.ReadCloser
	of   *forwarding
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.of.failed = err
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error { return b.body.Close() }

// unreachable returns the error for a client whose request got no answer.
func unreachable(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the aggregated server did not answer in time", 0)
	case errors.Is(err, errRedirected):
		return status.Failure(http.StatusBadGateway, "", err.Error())
	}
	return apierrors.NewServiceUnavailable("error trying to reach service: " + err.Error())
}

// finalAnswer leaves out informational answers.
type finalAnswer struct{ answer http.ResponseWriter }

// Header implements http.ResponseWriter.
func (w finalAnswer) Header() http.Header { return w.answer.Header() }

// Write implements http.ResponseWriter.
func (w finalAnswer) Write(p []byte) (int, error) { return w.answer.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (w finalAnswer) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.answer.WriteHeader(code)
	}
}

// Unwrap is for http.ResponseController.
func (w finalAnswer) Unwrap() http.ResponseWriter { return w.answer }
