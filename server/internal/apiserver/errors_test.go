package apiserver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/metrics"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// TestWhatIsLogged: failures of the server are logged; a version that only the
// client believes in is not.
func TestWhatIsLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		logged bool
	}{
		"a bug":                  {errors.New("a bug"), true},
		"a time-out":             {context.DeadlineExceeded, true},
		"a version too large":    {status.ResourceVersionTooLarge(9, 3), false},
		"not the server's fault": {status.BadRequest("no"), false},
	} {
		var log bytes.Buffer
		s := &Server{config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, metrics: metrics.New()}
		record := &request.Record{}
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		r = r.WithContext(request.WithRecord(r.Context(), record))
		encoding.WriteError(request.NewRecorder(httptest.NewRecorder(), r, record), r, tt.err)
		s.complete(request.NewRecorder(httptest.NewRecorder(), r, record), r, record, time.Now())
		if logged := log.Len() > 0; logged != tt.logged {
			t.Errorf("%s: logged %q", name, log.String())
		}
	}
}
