package quiet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
)

// The names of the clients, in the order of the report.
const (
	Pages    = "get and list by page, every second"
	Writes   = "create, update and delete, every 100 ms"
	Informer = "informer: a write until it is seen"
	Probe    = "watch: a write until its event"
)

// Names are all clients.
func Names() []string { return []string{Pages, Writes, Informer, Probe} }

// answerLimit is how long a request may take.
const answerLimit = 30 * time.Second

// Access is how the clients reach the server, each as a user of its own.
type Access struct {
	URL    string
	CA     []byte // PEM
	Tokens map[string]string
	// Lists is a path that is listed by page, and Namespace one that exists, for the
	// clients' own objects.
	Lists, Namespace string
}

// Measure is what a client has seen in a phase.
type Measure struct {
	Latency load.Histogram
	Errors  int
	Last    string // the last error
}

// Clients are the four, running.
type Clients struct {
	access Access
	written
	seen map[string]uint64 // by the informer: key to resource version

	mu       sync.Mutex // of all below, and of written and seen
	measures map[string]*Measure
}

// user is a client's connection.
type user struct {
	access Access
	http   *http.Client
	token  string
}

func (a Access) user(name string) (*user, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, errors.New("the server's authority is no certificate")
	}
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	return &user{a, &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}, a.Tokens[name]}, nil
}

// open sends a request, whose answer must be a success.
func (u *user) open(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.access.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+u.token)
	r.Header.Set("Accept", "application/json")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := u.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // only for the message
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return answer, nil
}

// do sends a request and decodes its answer.
func (u *user) do(ctx context.Context, method, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	answer, err := u.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// object is what the clients read of an object.
type object struct {
	Metadata struct {
		Name, ResourceVersion string
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

// Run starts the clients, has during do what it does, and stops them. At the end it
// compares what the informer holds with the acknowledged writes, and returns how many
// objects differ.
func Run(ctx context.Context, a Access, during func(*Clients) error) (lost int, err error) {
	c := &Clients{access: a, written: written{began: map[uint64]time.Time{}, held: map[string]uint64{}}, seen: map[string]uint64{}, measures: map[string]*Measure{}}
	c.Take()
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var writers, watchers sync.WaitGroup
	failed := make(chan error, 4)
	start := func(group *sync.WaitGroup, ctx context.Context, name string, run func(context.Context, *user) error) {
		group.Go(func() {
			u, err := a.user(name)
			if err == nil {
				err = run(ctx, u)
				u.http.CloseIdleConnections()
			}
			if ctx.Err() == nil && err != nil {
				failed <- fmt.Errorf("quiet client %q: %w", name, err)
			}
		})
	}
	start(&writers, writing, Pages, c.page)
	start(&writers, writing, Writes, c.write)
	start(&writers, writing, Probe, c.probe)
	start(&watchers, watching, Informer, c.inform)
	err = during(c)
	stopWriting()
	writers.Wait()
	lost = c.awaitEqual(ctx)
	stopWatching()
	watchers.Wait()
	select {
	case because := <-failed:
		err = errors.Join(because, err)
	default:
	}
	return lost, err
}

// Take returns what was measured since the last call.
func (c *Clients) Take() map[string]*Measure {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.measures
	c.measures = map[string]*Measure{}
	for _, name := range Names() {
		c.measures[name] = &Measure{}
	}
	return taken
}

// Errors is how many there were since the last Take.
func (c *Clients) Errors() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.measures {
		n += m.Errors
	}
	return n
}

// note counts what took since begun, unless the client is being stopped.
func (c *Clients) note(ctx context.Context, name string, begun time.Time, err error) {
	if ctx.Err() != nil {
		return
	}
	took := time.Since(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.measures[name].Latency.Add(took)
	if err != nil {
		c.measures[name].Errors++
		c.measures[name].Last = err.Error()
	}
}

// every calls do at an interval until the context ends.
func every(ctx context.Context, interval time.Duration, do func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return nil
		}
	}
}
