package faultnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipePair returns the two ends of a connection.
func pipePair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	p := NewPipe()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := p.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := p.Dial(t.Context(), "tcp", "ignored")
	if err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

func TestPipeHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPipe()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "first ")
			w.(http.Flusher).Flush()
			select { // the bubble's time: an hour passes at once
			case <-time.After(time.Hour):
				fmt.Fprint(w, "last")
			case <-r.Context().Done():
			}
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(p) }()
		transport := &http.Transport{DialContext: p.Dial}
		client := &http.Client{Transport: transport}

		start := time.Now()
		response, err := client.Get("http://server/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "first last" {
			t.Errorf("got %q, %v", body, err)
		}
		if passed := time.Since(start); passed != time.Hour {
			t.Errorf("%v passed", passed)
		}
		transport.CloseIdleConnections()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func TestPipeBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipePair(t)
		written := make(chan int, 1)
		go func() {
			n, _ := client.Write(make([]byte, pipeBuffer+1))
			written <- n
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Fatal("the buffer has no bound")
		default:
		}
		if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if n := <-written; n != pipeBuffer+1 {
			t.Errorf("wrote %d bytes", n)
		}
		// What was written before Close is still there after it.
		client.Close()
		if b, err := io.ReadAll(server); err != nil || len(b) != pipeBuffer {
			t.Errorf("read %d bytes, %v", len(b), err)
		}
	})
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipePair(t)
		start := time.Now()
		client.SetDeadline(start.Add(time.Minute))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if n, err := client.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || n != 0 {
			t.Errorf("write: %d, %v", n, err)
		}
		if passed := time.Since(start); passed != time.Minute {
			t.Errorf("%v passed", passed)
		}
		// A deadline set meanwhile reaches a call that waits.
		time.AfterFunc(time.Second, func() { server.SetReadDeadline(time.Now()) })
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		client.SetDeadline(time.Time{})
		server.SetDeadline(time.Time{})
		if _, err := io.WriteString(client, "x"); err != nil {
			t.Errorf("after the deadline was lifted: %v", err)
		}
	})
}

func TestPipeEnds(t *testing.T) {
	client, server := pipePair(t)
	io.WriteString(client, "bye")
	client.(interface{ CloseWrite() error }).CloseWrite()
	if b, err := io.ReadAll(server); err != nil || string(b) != "bye" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := io.WriteString(server, "and you"); err != nil {
		t.Errorf("the other half: %v", err)
	}
	server.Close()
	if b, err := io.ReadAll(client); err != nil || string(b) != "and you" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := server.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestPipeWriteToGonePeer(t *testing.T) {
	client, server := pipePair(t)
	server.Close()
	if _, err := io.Copy(client, strings.NewReader("hello?")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestPipeClosed(t *testing.T) {
	p := NewPipe()
	p.Close()
	p.Close()
	if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := p.Dial(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial: %v", err)
	}
}

func TestPipeDialIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewPipe().Dial(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
