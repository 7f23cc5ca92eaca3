package server

import (
	"maps"
	"testing"
)

// TestServersAgreeOnAuthorities: what two servers with other front proxies publish together changes no more when both have
// added their part, in whichever order: each write wakes the other server.
func TestServersAgreeOnAuthorities(t *testing.T) {
	const key = "requestheader-allowed-names"
	one, two := map[string][]string{key: {"proxy-a", "front-proxy-client"}}, map[string][]string{key: {"proxy-b", "front-proxy-client"}}
	both := mergeAuthentication(mergeAuthentication(nil, one), two)
	if want := `["proxy-a","front-proxy-client","proxy-b"]`; both[key] != want {
		t.Errorf("%s, want %s", both[key], want)
	}
	for _, own := range []map[string][]string{one, two} {
		if again := mergeAuthentication(both, own); !maps.Equal(again, both) {
			t.Errorf("%v becomes %v", both, again)
		}
	}
}
