package inspect

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Resources is the table of what is served.
type Resources interface {
	// All returns every resource in a stable order.
	All() []*resource.Resource
}

// Handler answers requests that have been authorized. All fields are required.
type Handler struct {
	Resources Resources
	// Cache returns the cache of a stored resource; nil if there is none yet.
	Cache func(stored *resource.Resource) *watchcache.Cache
	// Streams are the open watches.
	Streams *watchstream.Streams
	// Started is when the server began.
	Started time.Time
}

// For returns the handler of a path that is not about objects; nil if there is none.
func (h *Handler) For(path string) http.HandlerFunc {
	switch path {
	case debugapi.LogsPath:
		return answer(h.logs)
	case debugapi.WatchersPath:
		return answer(h.watchers)
	}
	return nil
}

// answer makes a handler of a function that returns what to encode.
func answer(of func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := of(r)
		if err == nil {
			err = Write(w, r, value)
		}
		if err != nil {
			encoding.WriteError(w, r, err)
		}
	}
}

// Write answers with a value as JSON. If it returns an error, it has written nothing.
func Write(w http.ResponseWriter, r *http.Request, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	encoding.WriteBody(w, r, http.StatusOK, "application/json", body)
	return nil
}

// Number reads a parameter that is a whole number from 0 to most; preset if it is not there.
func Number(r *http.Request, name string, preset, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, status.BadRequest("%s=%q: it must be a whole number from 0 to %d", name, text, most)
	}
	return n, nil
}

// Moment returns a time as JSON has it: nil for one that is not known.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = Rounded(t)
	return &t
}

// Rounded drops what is finer than a millisecond, and the time zone.
func Rounded(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
