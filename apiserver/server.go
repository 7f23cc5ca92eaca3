package apiserver

import (
	"net/http"
)

// Server answers the Kubernetes API. It is an http.Handler; all methods may
// be called concurrently.
type Server struct {
	config   Config
	metrics  *metrics
	verified verifiedCertificates

	readSlots, writeSlots chan struct{}

	// stopping is closed when the server drains: watches end then.
	stopping chan struct{}
}

// New returns a server, or what is wrong with its configuration. It starts
// nothing.
func New(config Config) (*Server, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	s := &Server{
		config:     config,
		metrics:    newMetrics(),
		readSlots:  make(chan struct{}, config.MaxReadsInFlight),
		writeSlots: make(chan struct{}, config.MaxWritesInFlight),
		stopping:   make(chan struct{}),
	}
	return s, nil
}

// route sends a request to the one who answers its path.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if t, ok := parsePath(r.URL.Path); ok {
		s.serveResource(w, r, t)
		return
	}
	writeError(w, r, errNoSuchPath())
}
