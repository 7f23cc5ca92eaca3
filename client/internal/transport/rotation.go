package transport

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	// checkInterval is how old the client's knowledge of its files may be when a
	// request is sent.
	checkInterval = time.Minute
	// recheckInterval is the same for a new connection and after a refusal: it only
	// keeps many of them from reading the files again and again.
	recheckInterval = time.Second

	// A program may start in the middle of a rotation, while its files do not fit
	// together: they are read again for as long as one usually takes.
	startAttempts = 10
	startPause    = 100 * time.Millisecond
)

// Transport sends requests on connections with the newest credentials. It is the
// lowest http.RoundTripper of a client and safe for concurrent use. There is no
// goroutine behind it: files are read when a request is sent, if the last time is
// longer ago than checkInterval.
//
// When credentials were rotated, new requests go to new connections. Those that are
// running, watches above all, go on where they are until they end by themselves:
// the server has authenticated them, and cutting them would make all watches of all
// clients start again at once. A connection is closed after its last request.
type Transport struct {
	config  Config
	source  source
	started time.Time
	current atomic.Pointer[generation]
	checked atomic.Int64 // when files were last read, in nanoseconds since started

	plugin atomic.Pointer[pluginAnswer] // of the current generation; nil: it was not asked yet

	reloads, failures atomic.Int64

	mu      sync.Mutex // held while files are read and credentials replaced
	failing bool       // the last reload failed, which was logged
	retired []weak.Pointer[http.Transport]
}

// generation is the connections that were made with the same credentials.
type generation struct {
	creds *credentials
	http  *http.Transport
}

// pluginAnswer is what an exec plugin has given.
type pluginAnswer struct{ cert *tls.Certificate } // nil: none, but a token perhaps

// New reads the files. It opens no connection, and calls no exec plugin.
func New(config Config) (*Transport, error) {
	t := &Transport{config: config, source: newSource(config.Config), started: time.Now()}
	creds, err := t.source.load()
	for attempt := 1; err != nil && !errors.Is(err, fs.ErrNotExist) && t.source.rotates() && attempt < startAttempts; attempt++ {
		time.Sleep(startPause)
		creds, err = t.source.load()
	}
	if err != nil {
		return nil, err
	}
	t.use(creds)
	return t, nil
}

// use makes credentials those of new connections.
func (t *Transport) use(creds *credentials) {
	if t.source.certFile != "" || t.source.getCert != nil {
		creds.tls.GetClientCertificate = t.clientCertificate
	}
	t.current.Store(&generation{creds, t.config.newHTTP(creds)})
}

// RoundTrip sends a request. A refusal for which old credentials may be the reason
// makes it look at their sources again; it is up to the caller to repeat the
// request if [Transport.Generation] has changed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.newest(checkInterval, false).http.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized || err != nil && (UntrustedServer(err) || refusedByServer(err)) {
		t.newest(recheckInterval, true)
	}
	return resp, err
}

// CloseIdleConnections closes connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.Load().http.CloseIdleConnections()
	for _, old := range t.retired {
		if h := old.Value(); h != nil {
			h.CloseIdleConnections()
		}
	}
}

// Generation changes when credentials are replaced.
func (t *Transport) Generation() any { return t.current.Load() }

// Reloads returns how often credentials were replaced, and how often that failed.
func (t *Transport) Reloads() (reloads, failures int64) {
	return t.reloads.Load(), t.failures.Load()
}

// clientCertificate is called for each new connection.
func (t *Transport) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if t.source.getCert == nil {
		return t.newest(recheckInterval, true).creds.clientCert, nil
	}
	cert, err := t.source.getCert()
	if cert == nil && err == nil {
		cert = &tls.Certificate{} // none, to crypto/tls
	}
	return cert, err
}

// newest returns the connections to use, after a look at the sources of credentials
// unless that was done within maxAge. While another goroutine reads files, it waits
// for the result, or returns what is in use.
func (t *Transport) newest(maxAge time.Duration, wait bool) *generation {
	if t.source.getCert != nil {
		t.checkPlugin()
	}
	if !t.source.rotates() {
		return t.current.Load()
	}
	if wait {
		t.mu.Lock()
	} else if !t.due(maxAge) || !t.mu.TryLock() {
		return t.current.Load()
	}
	defer t.mu.Unlock()
	if !t.due(maxAge) {
		return t.current.Load()
	}
	t.checked.Store(int64(time.Since(t.started)))
	err := t.reload()
	if err != nil {
		t.failures.Add(1)
		if !t.failing {
			t.config.Logger.Warn("changed credentials cannot be read; the old ones stay in use", "error", err)
		}
	}
	t.failing = err != nil
	return t.current.Load()
}

// due reports whether the files were last read longer ago than maxAge.
func (t *Transport) due(maxAge time.Duration) bool {
	return time.Since(t.started)-time.Duration(t.checked.Load()) >= maxAge
}

// reload reads the files and replaces credentials if they have changed. It requires
// mu.
func (t *Transport) reload() error {
	files, err := t.source.read()
	if err != nil {
		return err
	}
	old := t.current.Load().creds
	if files.equal(old.files) {
		return nil
	}
	creds, err := t.source.credentials(files)
	if err != nil {
		return err
	}
	t.replace(creds)
	return nil
}

// checkPlugin replaces credentials if an exec plugin returned another certificate, or one
// where there was none, or none any more: on an old connection the server would see the
// certificate with which that was made, or none. The plugin keeps its answer until that expires or a request is refused, so this is
// cheap. Its errors are those of the request that needs the certificate.
func (t *Transport) checkPlugin() {
	cert, err := t.source.getCert()
	if known := t.plugin.Load(); err != nil || known != nil && known.cert == cert {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.plugin.Swap(&pluginAnswer{cert})
	if old == nil || sameCertificate(old.cert, cert) {
		return // there is no connection with another certificate
	}
	creds, err := t.source.credentials(t.current.Load().creds.files)
	if err != nil {
		return // not possible: they are the same as before
	}
	t.replace(creds)
}

// replace makes credentials those of new requests. It requires mu.
func (t *Transport) replace(creds *credentials) {
	t.retire(creds)
	t.reloads.Add(1)
	t.config.Logger.Info("credentials were rotated; new requests use new connections")
}

// retire has new requests use new connections, with credentials. It requires mu.
func (t *Transport) retire(creds *credentials) {
	old := t.current.Load()
	t.use(creds)
	old.http.CloseIdleConnections()
	t.retired = slices.DeleteFunc(t.retired, func(p weak.Pointer[http.Transport]) bool { return p.Value() == nil })
	t.retired = append(t.retired, weak.Make(old.http))
}

// Reconnect has new requests use new connections, with the credentials that are in use.
func (t *Transport) Reconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	creds, err := t.source.credentials(t.current.Load().creds.files)
	if err != nil {
		return // not possible: they are the same as before
	}
	t.retire(creds)
}

// UntrustedServer reports whether err is that the client does not trust the server's
// certificate. No request was sent then.
func UntrustedServer(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted)
}

// refusedByServer reports whether err is a TLS alert of the server: it may not have
// accepted the client's certificate.
func refusedByServer(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
