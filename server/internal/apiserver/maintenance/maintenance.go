// Package maintenance serves what administrators do with the storage of a running
// server, to users of the group system:masters.
package maintenance

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// Path is the prefix of the paths: GET .../snapshot and .../check, POST .../defrag.
const Path = "/levelwire/v1/storage/"

// Report is the answer to a check.
type Report struct {
	Members []storage.MemberReport `json:"members"`
	// Differences is in how many objects the server's caches differed from the storage.
	// They have been corrected, or will be with the next change.
	Differences int `json:"differences"`
}

// Handler answers the requests, one at a time: others get 409.
type Handler struct {
	// Store is nil if the storage has nothing to be maintained.
	Store storage.Maintainer
	// CheckCaches compares the caches with the storage and returns in how many objects
	// they differed.
	CheckCaches func(context.Context) (int, error)
	// Logger must not be nil.
	Logger *slog.Logger

	busy sync.Mutex
}

// Serve answers a request of a user whose path begins with Path.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, user auth.User) {
	if err := h.serve(w, r, user); err != nil {
		encoding.WriteError(w, r, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, user auth.User) error {
	operation := strings.TrimPrefix(r.URL.Path, Path)
	if !user.In(auth.Masters) {
		return status.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, "the storage is maintained by users of the group "+auth.Masters)
	}
	method := map[string]string{"snapshot": http.MethodGet, "check": http.MethodGet, "defrag": http.MethodPost}[operation]
	switch {
	case method == "":
		return status.NoSuchPath()
	case r.Method != method:
		return status.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the method of this path is "+method)
	case h.Store == nil:
		return status.BadRequest("the storage of this server is not kept in etcd: there is nothing to maintain")
	case !h.busy.TryLock():
		return status.Failure(http.StatusConflict, metav1.StatusReasonConflict, "the storage is being maintained by another request: try again when that is done")
	}
	defer h.busy.Unlock()
	h.Logger.Info("maintaining the storage", "operation", operation, "user", user.Name)
	switch operation {
	case "snapshot":
		return h.snapshot(w, r)
	case "defrag":
		done, err := h.Store.Defragment(r.Context())
		if err != nil {
			return err
		}
		return writeJSON(w, done)
	default:
		members, err := h.Store.Check(r.Context())
		if err != nil {
			return err
		}
		differences, err := h.CheckCaches(r.Context())
		if err != nil {
			return err
		}
		return writeJSON(w, Report{members, differences})
	}
}

// snapshot sends the data with their checksum. If they end early, so does the
// connection.
func (h *Handler) snapshot(w http.ResponseWriter, r *http.Request) error {
	data, err := h.Store.Snapshot(r.Context())
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := io.Copy(newSteadyWriter(w), data); err != nil {
		h.Logger.Warn("a snapshot was not sent to its end", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // fails only with the connection
	return nil
}
