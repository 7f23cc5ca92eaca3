package profiling

import (
	"math"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Path is where Kubernetes' servers have their profiles, too, so that
// "go tool pprof" and "kubectl get --raw" find them.
const Path = "/debug/pprof"

// defaultProfile is how long a profile over time lasts without ?seconds=.
const defaultProfile = 30 * time.Second

// Config bounds how long a profile may be recorded.
type Config struct {
	// RequestTimeout is the time that a request has.
	RequestTimeout time.Duration
	// Stopping is closed when the server drains: recordings end then.
	Stopping <-chan struct{}
}

// Handler returns the handler of the profile with a name, "" for their list; nil if
// there is no such profile. The handlers of net/http/pprof are not used: importing
// them would put profiles on the default mux of every program that embeds a server.
func (c Config) Handler(name string) http.HandlerFunc {
	switch name {
	case "":
		return serveProfileIndex
	case "profile":
		return c.profileOverTime(func(w http.ResponseWriter) (func(), error) { return pprof.StopCPUProfile, pprof.StartCPUProfile(w) })
	case "trace":
		return c.profileOverTime(func(w http.ResponseWriter) (func(), error) { return trace.Stop, trace.Start(w) })
	}
	p := pprof.Lookup(name)
	if p == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) {
		debug, err := strconv.Atoi(r.URL.Query().Get("debug"))
		if err != nil {
			debug = 0
		}
		w.Header().Set("Content-Type", profileType(debug))
		_ = p.WriteTo(w, debug) // fails only with the connection
	}
}

func profileType(debug int) string {
	if debug > 0 {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// profileOverTime answers with what is recorded between start and stop.
func (c Config) profileOverTime(start func(http.ResponseWriter) (stop func(), err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		length := defaultProfile
		if text := r.URL.Query().Get("seconds"); text != "" {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds >= c.RequestTimeout.Seconds() {
				encoding.WriteError(w, r, status.BadRequest("seconds=%s: it must be a number above 0 and below %v", text, c.RequestTimeout.Seconds()))
				return
			}
			length = time.Duration(seconds * float64(time.Second))
		}
		w.Header().Set("Content-Type", profileType(0))
		stop, err := start(w)
		if err != nil {
			w.Header().Del("Content-Type")
			encoding.WriteError(w, r, status.Failure(http.StatusConflict, metav1.StatusReasonConflict, "another profile is being recorded; ask again when it is done"))
			return
		}
		defer stop()
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-c.Stopping:
		}
	}
}

func serveProfileIndex(w http.ResponseWriter, _ *http.Request) {
	var list strings.Builder
	list.WriteString("profile?seconds=30\ntrace?seconds=5\n")
	for _, p := range pprof.Profiles() {
		list.WriteString(p.Name() + "?debug=1\n")
	}
	w.Header().Set("Content-Type", profileType(1))
	_, _ = w.Write([]byte(list.String())) // fails only with the connection
}
