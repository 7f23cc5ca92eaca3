package podstream

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/client"
)

// Logs reads the log of a container. With opts.Follow it goes on until the container
// ends; a nil opts is the whole log of the only container. The reader ends with ctx,
// or when it is closed, which must be done.
func Logs(ctx context.Context, c *client.Client, namespace, pod string, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	r, err := pods(c, namespace)
	if err != nil {
		return nil, fmt.Errorf("log of %q: %w", pod, err)
	}
	var query runtime.Object
	if opts != nil {
		query = opts
	}
	return r.SubResource("log").Stream(ctx, pod, query)
}
