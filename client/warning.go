package client

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// warnings receives the warnings of a server: deprecated versions, fields that it
// does not know, rules that will be enforced. client-go's handlers can be set in
// rest.Config; without one, each text is logged once.
type warnings struct {
	handler            rest.WarningHandler
	handlerWithContext rest.WarningHandlerWithContext
	log                *slog.Logger

	mu     sync.Mutex
	logged map[string]bool
}

// maxLoggedWarnings bounds the memory of texts; further ones are not logged.
const maxLoggedWarnings = 256

func newWarnings(cfg *rest.Config, log *slog.Logger) *warnings {
	return &warnings{handler: cfg.WarningHandler, handlerWithContext: cfg.WarningHandlerWithContext, log: log, logged: map[string]bool{}}
}

// read passes on the warnings of an answer. Headers that cannot be parsed are left
// out. contained calls a handler, which may panic.
func (w *warnings) read(ctx context.Context, header http.Header, contained func(what string, call func())) {
	values := header.Values("Warning")
	if len(values) == 0 {
		return
	}
	parsed, _ := utilnet.ParseWarningHeaders(values) // the errors are about those left out
	for _, one := range parsed {
		switch {
		case w.handlerWithContext != nil:
			contained("WarningHandlerWithContext", func() {
				w.handlerWithContext.HandleWarningHeaderWithContext(ctx, one.Code, one.Agent, one.Text)
			})
		case w.handler != nil:
			contained("WarningHandler", func() { w.handler.HandleWarningHeader(one.Code, one.Agent, one.Text) })
		case w.isNew(one.Text):
			w.log.Warn("the API server warns", "warning", one.Text)
		}
	}
}

// isNew reports whether a text was not logged before.
func (w *warnings) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" || w.logged[text] || len(w.logged) >= maxLoggedWarnings {
		return false
	}
	w.logged[text] = true
	return true
}
