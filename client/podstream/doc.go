// Package podstream streams to and from the containers of pods: logs, exec, attach
// and port forwarding. It speaks the protocols of client-go's streaming packages,
// WebSocket first and then SPDY, to servers whose nodes run containers.
//
// It is a package of its own because those packages are large: only programs that
// stream have them. Logs come over the connections of the client.Client; the others
// open a connection for each call, with the configuration and the credentials of
// the Client as they are then, but without the Dial of its rest.Config or Options, and
// without Options.WrapTransport and RateLimiter.
package podstream

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
)

// pods is the endpoint of the pods of a namespace.
func pods(c *client.Client, namespace string) (client.Resource[*corev1.Pod], error) {
	r := client.For[*corev1.Pod](c).Namespace(namespace)
	if namespace == "" {
		return r, errors.New("the pod's namespace is empty")
	}
	return r, nil
}
