package server

import (
	"net"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// TestUpstreamElsewhere: only what is surely the relay itself is refused as its upstream.
func TestUpstreamElsewhere(t *testing.T) {
	for _, test := range []struct {
		bind string
		port int
		host string
		ok   bool
		via  func(*rest.Config) // nil: directly
	}{
		{"127.0.0.1", 7443, "https://127.0.0.1:7443", false, nil},
		{"127.0.0.1", 7443, "https://localhost:7443", false, nil},
		{"0.0.0.0", 7443, "https://127.0.0.1:7443", false, nil},
		{"::", 7443, "https://[::1]:7443", false, nil},
		{"10.0.0.7", 7443, "https://10.0.0.7:7443", false, nil},
		{"127.0.0.1", 7443, "https://127.0.0.1:6443", true, nil},
		{"127.0.0.1", 7443, "https://127.0.0.2:7443", true, nil},
		{"0.0.0.0", 7443, "https://10.0.0.7:7443", true, nil}, // which may be this machine, or not
		{"0.0.0.0", 443, "https://api.example", true, nil},
		{"127.0.0.1", 443, "https://127.0.0.1", false, nil},
		{"127.0.0.1", 443, "http://127.0.0.1", true, nil},
		{"127.0.0.1", 7443, "https://127.0.0.1", true, nil},
		// At the far end of a proxy or a dialer, another machine is the local one.
		{"127.0.0.1", 7443, "https://127.0.0.1:7443", true, func(c *rest.Config) { c.Proxy = http.ProxyFromEnvironment }},
		{"127.0.0.1", 7443, "https://127.0.0.1:7443", true, func(c *rest.Config) { c.Dial = (&net.Dialer{}).DialContext }},
		{"127.0.0.1", AnyPort, "https://127.0.0.1:7443", true, nil},
	} {
		upstream := &rest.Config{Host: test.host}
		if test.via != nil {
			test.via(upstream)
		}
		c := Config{BindAddress: test.bind, SecurePort: test.port, Relay: &Relay{Config: upstream}}
		if err := c.checkUpstream(); (err == nil) != test.ok {
			t.Errorf("%s port %d, upstream %s: %v", test.bind, test.port, test.host, err)
		}
	}
}
