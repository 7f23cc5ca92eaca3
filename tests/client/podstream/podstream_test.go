package podstream_test

import (
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/podstream"
	"github.com/levelwire/levelwire/levelwiretest"
)

// The nodes of a Levelwire server run no containers, and its answer says so.
func TestStreamsOfSimulatedPods(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"log": func() error { _, err := podstream.Logs(ctx, c, "default", "web", nil); return err },
		"exec": func() error {
			return podstream.Exec(ctx, c, "default", "web", podstream.ExecOptions{Command: []string{"true"}, Streams: podstream.Streams{Stdout: io.Discard}})
		},
		"attach": func() error {
			return podstream.Attach(ctx, c, "default", "web", podstream.AttachOptions{Streams: podstream.Streams{Stdout: io.Discard}})
		},
		"port-forward": func() error {
			_, err := podstream.PortForward(ctx, c, "default", "web", podstream.PortForwardOptions{Ports: []string{":80"}})
			return err
		},
	} {
		if err := call(); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "simulate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
