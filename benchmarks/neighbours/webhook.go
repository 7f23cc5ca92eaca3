package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/internal/pki"
)

const (
	readersToken = "token-of-the-readers"
	// readers is how many requests of one user wait for the webhook at once: more than it gets of the server's slots.
	readers = 900
	certs   = 10 // objects that are read
)

// readThroughHangingWebhook reads objects in a version that a conversion webhook would have to make, and which
// does not answer: gets, lists and watches, again and again.
func readThroughHangingWebhook(ctx context.Context, p *plan, t *tested.Server, c *load.Conn) (err error) {
	hook, stop, err := startHanging(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := defineCerts(ctx, c, hook); err != nil {
		return err
	}
	access := t.Access
	access.Cert, access.Key = nil, nil // the readers are a user with a token
	config, address, err := access.Reach()
	if err != nil {
		return err
	}
	conn, err := load.Dial(ctx, address, config, load.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	// A connection has a hundred streams until a request on it is authenticated.
	if err := conn.Do(ctx, as(readersToken, "/api")).Check(0); err != nil {
		return err
	}
	answers, err := read(ctx, p.least, conn)
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(os.Stderr, "the readers got %d %d times\n", status, answers[status])
	}
	return err
}

// read has all readers read again and again for a time, and returns how often they got which status.
func read(ctx context.Context, d time.Duration, conn *load.Conn) (answers map[int]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var reading sync.WaitGroup
	var mu sync.Mutex // of the results
	answers = map[int]int{}
	for i := range readers {
		reading.Go(func() {
			for ctx.Err() == nil {
				answer := conn.Do(ctx, readOf(i))
				if ctx.Err() != nil {
					return // it still waits
				}
				mu.Lock()
				answers[answer.Status]++
				if err == nil {
					err = answer.Err
				}
				mu.Unlock()
				if answer.Err != nil {
					return
				}
				_ = tested.Pause(ctx, time.Second) // as Retry-After says; the loop ends with it
			}
		})
	}
	reading.Wait()
	return answers, err
}

// readOf is the request of a reader.
func readOf(reader int) load.Request {
	const path = "/apis/example.com/v1alpha1/namespaces/" + crowdNamespace + "/certs"
	paths := []string{path, path + "?watch=true", fmt.Sprintf("%s/cert-%d", path, reader%certs)}
	return as(readersToken, paths[reader%len(paths)])
}

func as(token, path string) load.Request {
	return load.Request{Path: path, Header: []hpack.HeaderField{{Name: "authorization", Value: "Bearer " + token}, {Name: "accept", Value: "application/json"}}}
}

// hanging is a webhook that takes requests and does not answer.
type hanging struct {
	url       string
	authority []byte // PEM
}

func startHanging(ctx context.Context) (h hanging, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "webhook")
	if err != nil {
		return h, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		return h, nil, err
	}
	pair, err := authority.Serving(dir, []string{"127.0.0.1"})
	if err != nil {
		return h, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return h, nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair.TLS()}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	stop = func() error {
		err := server.Close()
		if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	}
	return hanging{url: "https://" + listener.Addr().String() + "/convert", authority: authority.CertificatePEM()}, stop, nil
}

// defineCerts makes a definition of two versions, with objects of the first.
func defineCerts(ctx context.Context, c *load.Conn, hook hanging) error {
	version := func(name string, stored bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, stored)
	}
	requests := []load.Request{post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"certs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",`+
			`"names":{"plural":"certs","singular":"cert","kind":"Cert","listKind":"CertList"},"versions":[%s,%s],"conversion":{"strategy":"Webhook","webhook":`+
			`{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}}}`,
		version("v1", true), version("v1alpha1", false), hook.url, base64.StdEncoding.EncodeToString(hook.authority)))}
	for n := range certs {
		requests = append(requests, post("/apis/example.com/v1/namespaces/"+crowdNamespace+"/certs",
			fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Cert","metadata":{"name":"cert-%d"}}`, n)))
	}
	for _, request := range requests {
		if err := c.Do(ctx, request).Check(0); err != nil {
			return err
		}
	}
	return nil
}
