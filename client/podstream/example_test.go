package podstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/podstream"
)

func ExampleExec() {
	run := func(ctx context.Context, c *client.Client) error {
		err := podstream.Exec(ctx, c, "default", "web-0", podstream.ExecOptions{
			Command: []string{"sh", "-c", "df -h /data"},
			Streams: podstream.Streams{Stdout: os.Stdout, Stderr: os.Stderr},
		})
		var exit *podstream.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("df ended with %d", exit.Code)
		}
		return err
	}
	_ = run
}

func ExampleLogs() {
	follow := func(ctx context.Context, c *client.Client) error {
		log, err := podstream.Logs(ctx, c, "default", "web-0", &corev1.PodLogOptions{Container: "main", Follow: true})
		if err != nil {
			return err
		}
		defer log.Close()
		_, err = io.Copy(os.Stdout, log)
		return err
	}
	_ = follow
}

func ExamplePortForward() {
	forward := func(ctx context.Context, c *client.Client) error {
		f, err := podstream.PortForward(ctx, c, "default", "web-0", podstream.PortForwardOptions{Ports: []string{":8080"}})
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Printf("http://localhost:%d\n", f.Ports()[0].Local)
		<-f.Done()
		return f.Err()
	}
	_ = forward
}
