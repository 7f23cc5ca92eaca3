package attacks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Target is the server under attack, and the credentials of the attacker.
type Target struct {
	URL   string
	CA    []byte // PEM
	Token string
	// CustomResources is whether the server has custom resource definitions; attacks by
	// means of them are left out otherwise.
	CustomResources bool
	// Scale multiplies the rates of all attacks.
	Scale float64
	// Only is the names of the attacks to carry out; empty: all.
	Only []string
	// Lists is a path of which a list is large.
	Lists string
}

// Count is how often an attack was carried out.
type Count struct {
	Name string
	// Made counts the attempts that have ended, and Cut those among them that the server
	// refused or ended, which is its right.
	Made, Cut int64
}

// hold is for how long an attack keeps what it has opened, unless the server ends it.
const hold = 20 * time.Second

// attack is something that a hostile client does.
type attack struct {
	name string
	// perSecond is how often it is done, with a scale of 1, and atOnce how many of them
	// may go on at a time.
	perSecond float64
	atOnce    int
	// once does it. An error says that the server has refused or ended it.
	once func(context.Context, *attacker) error
	// prepare, if set, makes what once needs, and release removes it.
	prepare func(context.Context, *attacker) (release func(), err error)
	// needsCustomResources is whether the attack uses custom resource definitions.
	needsCustomResources bool
	// crowding is whether the attack asks for much at once, slowly or without end, and nothing
	// else.
	crowding bool

	made, cut atomic.Int64
}

// attacker is what all attacks share.
type attacker struct {
	Target
	host    string
	config  *tls.Config // HTTP/2
	config1 *tls.Config // HTTP/1.1
	client  *http.Client
	client1 *http.Client // HTTP/1.1
	serial  atomic.Int64
	refused tls.Certificate // which no server trusts, with a long chain
}

func newAttacker(t Target) (*attacker, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(t.CA) {
		return nil, errors.New("the server's authority is no certificate")
	}
	a := &attacker{Target: t, host: u.Host, config: &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}}
	a.config1 = &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}
	a.client = a.newClient()
	a.client1 = &http.Client{Transport: &http.Transport{TLSClientConfig: a.config1, DisableCompression: true, MaxIdleConnsPerHost: 100}}
	a.refused, err = longChain(9)
	return a, err
}

// newClient is a client of net/http with connections of its own.
func (a *attacker) newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: a.config, ForceAttemptHTTP2: true, DisableCompression: true}}
}

// Run attacks the server until the context ends, and calls report with the counts every
// interval, and at the end.
func Run(ctx context.Context, t Target, interval time.Duration, report func([]Count)) error {
	a, err := newAttacker(t)
	if err != nil {
		return err
	}
	all := a.chosen()
	var running sync.WaitGroup
	failures := make(chan error, len(all))
	for _, k := range all {
		running.Go(func() {
			if err := k.run(ctx, a); err != nil {
				failures <- err
			}
		})
	}
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			report(counts(all))
		case err := <-failures:
			return err
		case <-ended:
			a.client.CloseIdleConnections()
			a.client1.CloseIdleConnections()
			report(counts(all))
			return nil
		}
	}
}

// chosen are the attacks that are asked for and possible.
func (a *attacker) chosen() (chosen []*attack) {
	only := map[string]bool{}
	for _, name := range a.Only {
		only[name] = true
	}
	for _, k := range table() {
		if (len(only) == 0 || only[k.name]) && (a.CustomResources || !k.needsCustomResources) {
			chosen = append(chosen, k)
		}
	}
	return chosen
}

// Names are the names of all attacks.
func Names() (names []string) {
	for _, k := range table() {
		names = append(names, k.name)
	}
	return names
}

// Crowding are the names of the attacks by which one client takes room and time: 10,000 requests in
// flight, 5,000 watches, slow readers, bodies without end, and floods of requests and frames over
// HTTP/1.1 and HTTP/2.
func Crowding() (names []string) {
	for _, k := range table() {
		if k.crowding {
			names = append(names, k.name)
		}
	}
	return names
}

func counts(all []*attack) (c []Count) {
	for _, k := range all {
		c = append(c, Count{Name: k.name, Made: k.made.Load(), Cut: k.cut.Load()})
	}
	return c
}

// run does the attack at its rate until the context ends, and waits for what it has
// begun. While atOnce of them go on, none begins. Intervals are random, so that attacks
// do not fall together with each other, or with what the quiet clients do at fixed times.
func (k *attack) run(ctx context.Context, a *attacker) error {
	if k.prepare != nil {
		release, err := k.prepare(ctx, a)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return errors.Join(errors.New("attack "+k.name), err)
		}
		defer release()
	}
	var going sync.WaitGroup
	defer going.Wait()
	room := make(chan struct{}, k.atOnce)
	interval := func() time.Duration {
		return time.Duration(2 * rand.Float64() * float64(time.Second) / (k.perSecond * a.Scale))
	}
	next := time.NewTimer(interval())
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		next.Reset(interval())
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		going.Go(func() {
			defer func() { <-room }()
			held, cancel := context.WithTimeout(ctx, hold)
			defer cancel()
			err := k.once(held, a)
			if held.Err() == nil && err != nil {
				k.cut.Add(1)
			}
			k.made.Add(1)
		})
	}
}
