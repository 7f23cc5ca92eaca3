package apiserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

func TestFilesAreReserved(t *testing.T) {
	if limit := listen.DefaultLimit(); newCluster(t).server.config.MaxConnections != limit {
		t.Errorf("a server that is told nothing has not the limit %d", limit)
	}
}

// TestSilentConnectionsMakeRoom: connections that are held, or on which nothing but public
// paths is asked for, keep out no client that authenticates, and end no connection of one.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	for _, http2 := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		t.Run(string(http2), func(t *testing.T) {
			c := newCluster(t, func(s *setup) { s.config.MaxConnections, s.config.HTTP2Server = 10, http2 })
			stream := c.watch("/api/v1/pods?watch=1&resourceVersion=1")
			c.overBoth(t, func(*testing.T) { c.get("/api/v1/pods") }) // which leaves a connection of either version
			for range 50 {
				conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
				must(t, err)
				defer conn.Close()
			}
			testwait.Stable(t, "the connections are closed", func() (any, bool) { seen := c.server.connections.Evicted(); return seen, seen == 50-8 })
			newcomer, other := clients(c.authority)
			for _, client := range []*http.Client{newcomer, other} {
				defer client.CloseIdleConnections()
				resp := c.open(t.Context(), client, http.MethodGet, "/api/v1/pods", "")
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("a client that can say who it is: %s", resp.Status)
				}
			}
			c.put(testPod("a", "seen", nil, ""))
			stream.next()
			if n, refused := c.server.connections.Open(), c.server.connections.Refused(); n > 10 || refused != 0 {
				t.Errorf("%d are open, %d were refused", n, refused)
			}
			if got := c.get("/metrics"); !strings.Contains(string(got.body), "levelwire_connections_evicted_total 44\n") {
				t.Errorf("metrics do not have it")
			}
		})
	}
}

// TestHandshakesAreBounded: a client that does not begin with TLS is not waited for.
func TestHandshakesAreBounded(t *testing.T) {
	c := newCluster(t)
	synctest.Test(t, func(t *testing.T) {
		pipe := faultnet.NewPipe()
		defer pipe.Close()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- c.server.Serve(ctx, pipe, &tls.Config{Certificates: []tls.Certificate{{}}}) }()
		conn, err := pipe.Dial(ctx, "tcp", "x")
		must(t, err)
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		stop()
		must(t, <-served)
	})
}

// fresh returns a client that has no connection yet.
func (c *cluster) fresh(protocol string) *http.Client {
	client, http1 := clients(c.authority)
	if protocol == "HTTP/1.1" {
		client = http1
	}
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

// newcomer sends a GET with a token over a new connection, which is idle afterwards and whose
// client is returned.
func (c *cluster) newcomer(protocol, path, token string) (reply, *http.Client) {
	c.t.Helper()
	client := c.fresh(protocol)
	resp := c.open(c.t.Context(), client, http.MethodGet, path, "", "Authorization: Bearer "+token)
	defer resp.Body.Close()
	if resp.Proto[:6] != protocol[:6] {
		c.t.Errorf("%s was asked for, %s answers", protocol, resp.Proto)
	}
	body, err := io.ReadAll(resp.Body)
	must(c.t, err)
	return reply{resp.StatusCode, resp.Header, body}, client
}

// watchAlone opens a watch over a new connection.
func (c *cluster) watchAlone(protocol, token string) *frames {
	c.t.Helper()
	shared := c.client
	defer func() { c.client = shared }()
	c.client = c.fresh(protocol)
	return c.watch("/api/v1/pods?watch=1&resourceVersion=1", "Authorization: Bearer "+token)
}

// overEach runs a test over both versions of HTTP, of both servers.
func overEach(t *testing.T, test func(t *testing.T, server HTTP2Server, protocol string)) {
	for _, server := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(string(server)+" "+protocol, func(t *testing.T) { test(t, server, protocol) })
		}
	}
}

// TestTooManyConnections of one user are closed after an answer that says so. Another user
// and administrators get in, what is open goes on, and what ends is given back.
func TestTooManyConnections(t *testing.T) {
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		c := newCluster(t, threeUsers, func(s *setup) { s.config.MaxConnections, s.config.HTTP2Server = 10, server })
		var open []*frames
		for range 6 {
			open = append(open, c.watchAlone(protocol, greedyToken))
		}
		for range 20 {
			got, _ := c.newcomer(protocol, "/api/v1/pods", greedyToken)
			status := got.status(t)
			if got.code != http.StatusTooManyRequests || status.Reason != metav1.StatusReasonTooManyRequests || got.header.Get("Retry-After") != "1" ||
				!strings.Contains(status.Message, `the user "greedy": 6 of the 10 that may be open`) {
				t.Fatalf("%d %v %s", got.code, got.header, got.body)
			}
		}
		testwait.Stable(t, "refused connections are closed", func() (any, bool) { seen := c.server.connections.Open(); return seen, seen == 6 })
		if got, _ := c.newcomer(protocol, "/api/v1/pods", testToken); got.code != http.StatusOK {
			t.Errorf("another user: %d %s", got.code, got.body)
		}
		got, _ := c.newcomer(protocol, "/metrics", adminToken)
		for _, want := range []string{
			`levelwire_user_shares_in_use{resource="connections"} 8`, `levelwire_user_shares_limit{resource="connections"} 9`,
			"levelwire_connections 8\n", "levelwire_connections_throttled_total 20\n", "levelwire_connections_refused_total 0\n",
		} {
			if !strings.Contains(string(got.body), want) {
				t.Errorf("metrics lack %s", want)
			}
		}
		c.put(testPod("a", "seen", nil, ""))
		for _, stream := range open {
			stream.next()
		}
		for _, stream := range open[:3] { // two are left to users with fewer
			stream.close()
		}
		testwait.Stable(t, "another connection of the user gets in", func() (any, bool) {
			got, _ := c.newcomer(protocol, "/api/v1/pods", greedyToken)
			return string(got.body), got.code == http.StatusOK
		})
	})
}

// TestConnectionsThatAreHeld: one user holds all that it may, clients without a user hold the
// rest, and another user and an administrator get in and can write, however slowly.
func TestConnectionsThatAreHeld(t *testing.T) {
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		c := newCluster(t, threeUsers, func(s *setup) { s.config.MaxConnections, s.config.HTTP2Server = 10, server })
		for range 6 {
			c.watchAlone(protocol, greedyToken)
		}
		slow := c.beginPost(protocol, testToken)
		testwait.Stable(t, "the server has the request", func() (any, bool) { seen := c.server.connections.InUse(); return seen, seen == 7 })
		for range 50 {
			conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
			must(t, err)
			defer conn.Close()
		}
		testwait.Stable(t, "they make room for each other", func() (any, bool) { seen := c.server.connections.Evicted(); return seen, seen == 50-3 })
		c.client = c.fresh(protocol)
		if got := c.post(adminToken); got.code != http.StatusCreated {
			t.Errorf("%d %s", got.code, got.body)
		}
		if code := slow(); code != http.StatusCreated {
			t.Errorf("a request that was under way: %d", code)
		}
		if refused := c.server.connections.Refused(); refused != 0 {
			t.Errorf("%d were refused", refused)
		}
	})
}

// beginPost sends half of a POST over a new connection; end sends the rest and returns the
// code of the answer.
func (c *cluster) beginPost(protocol, token string) (end func() int) {
	c.t.Helper()
	body, rest := io.Pipe()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/api/v1/namespaces/default/configmaps", body)
	must(c.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	codes := make(chan int, 1)
	client := c.fresh(protocol)
	go func() {
		resp, err := client.Do(req)
		if err != nil {
			c.t.Error(err)
			codes <- 0
			return
		}
		resp.Body.Close()
		codes <- resp.StatusCode
	}()
	object := strings.Replace(newConfigMap, "{", `{ `, 1)
	_, err = io.WriteString(rest, object[:2])
	must(c.t, err)
	return func() int {
		_, err := io.WriteString(rest, object[2:])
		must(c.t, err)
		must(c.t, rest.Close())
		return <-codes
	}
}

// TestIdleConnectionsAreGivenUp: when users hold all that there is, one that has none gets a
// connection that was idle, and no watch ends.
func TestIdleConnectionsAreGivenUp(t *testing.T) {
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		users := map[string]auth.User{testToken: {Name: "tester"}}
		for i := range 7 {
			users[fmt.Sprint("token", i)] = auth.User{Name: fmt.Sprint("user", i)}
		}
		c := newCluster(t, func(s *setup) {
			s.config.MaxConnections, s.config.HTTP2Server = 10, server
			s.config.Tokens = auth.NewStaticTokens(users)
		})
		stream := c.watchAlone(protocol, testToken)
		_, idle := c.newcomer(protocol, "/api/v1/pods", testToken)
		for i := range 6 {
			c.watchAlone(protocol, fmt.Sprint("token", i))
		}
		testwait.Stable(t, "a user without a connection gets in", func() (any, bool) { // when the server knows that there is no request on the idle one
			got, _ := c.newcomer(protocol, "/api/v1/pods", "token6")
			return string(got.body), got.code == http.StatusOK
		})
		if n := c.server.connections.YieldedTotal(); n != 1 {
			t.Errorf("%d were given up", n)
		}
		c.put(testPod("a", "seen", nil, ""))
		stream.next()
		testwait.Stable(t, "the connection that was given up is closed", func() (any, bool) {
			idle.CloseIdleConnections() // which a client does that has read the GOAWAY
			seen := c.server.connections.Open()
			return seen, seen == 8
		})
	})
}

// TestConnectionsInUseAgainAreKept: a connection that was idle, and has a watch now, is not
// given up.
func TestConnectionsInUseAgainAreKept(t *testing.T) {
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		users := map[string]auth.User{}
		for i := range 9 {
			users[fmt.Sprint("token", i)] = auth.User{Name: fmt.Sprint("user", i)}
		}
		c := newCluster(t, func(s *setup) {
			s.config.MaxConnections, s.config.HTTP2Server = 10, server
			s.config.Tokens = auth.NewStaticTokens(users)
		})
		for i := range 8 {
			c.watchAfterGet(protocol, fmt.Sprint("token", i))
		}
		for range 5 {
			if got, _ := c.newcomer(protocol, "/api/v1/pods", "token8"); got.code != http.StatusTooManyRequests {
				t.Fatalf("a user that has none: %d %s", got.code, got.body)
			}
		}
		if n := c.server.connections.YieldedTotal(); n != 0 {
			t.Errorf("%d were given up", n)
		}
	})
}

// watchAfterGet opens a watch over a new connection on which a GET was answered.
func (c *cluster) watchAfterGet(protocol, token string) {
	c.t.Helper()
	shared := c.client
	defer func() { c.client = shared }()
	c.client = c.fresh(protocol)
	if protocol == "HTTP/1.1" {
		conn := c.dialHTTP1()
		c.client = &http.Client{Transport: &oneConnection{conn, bufio.NewReader(conn)}}
		defer c.t.Cleanup(func() { conn.Close() }) // before the body, which would be read to its end
	}
	if got := c.get("/api/v1/pods", "Authorization: Bearer "+token); got.code != http.StatusOK {
		c.t.Fatalf("%d %s", got.code, got.body)
	}
	c.watch("/api/v1/pods?watch=1&resourceVersion=1", "Authorization: Bearer "+token)
}

// TestConnectionsOfProxies count as the proxy's, whichever users it names first, and no limit
// of each user holds for it. Where it names an administrator first, there is one kept.
func TestConnectionsOfProxies(t *testing.T) {
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	must(t, err)
	pair, err := authority.Client(t.TempDir(), "front", "front", "proxies")
	must(t, err)
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		c := newCluster(t, threeUsers, func(s *setup) {
			s.config.MaxConnections, s.config.MaxConnectionsPerUser, s.config.HTTP2Server = 10, 1, server
			s.config.RequestHeader = &authentication.RequestHeader{
				CAs:             authentication.NewAuthorities([]*x509.Certificate{authority.Certificate()}),
				UsernameHeaders: []string{"X-Remote-User"}, GroupHeaders: []string{"X-Remote-Group"},
			}
		})
		proxied := func(path, user, group string) (int, func() string) {
			client := c.fresh(protocol)
			client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair.TLS()}
			resp := c.open(t.Context(), client, http.MethodGet, path, "", "Authorization: ", "X-Remote-User: "+user, "X-Remote-Group: "+group)
			t.Cleanup(func() { resp.Body.Close() })
			return resp.StatusCode, func() string {
				body, err := io.ReadAll(resp.Body)
				must(t, err)
				return string(body)
			}
		}
		for i := range 6 {
			if code, body := proxied("/api/v1/pods?watch=1&resourceVersion=1", fmt.Sprint("user", i), "x"); code != http.StatusOK {
				t.Fatalf("%d %s", code, body())
			}
		}
		if code, body := proxied("/api/v1/pods", "more", "x"); code != http.StatusTooManyRequests || !strings.Contains(body(), `the proxy \"front\": 6 of the 10`) {
			t.Errorf("a seventh connection of the proxy: %d %s", code, body())
		}
		if code, body := proxied("/api/v1/pods", "admin", auth.Masters); code != http.StatusOK {
			t.Errorf("an administrator behind the proxy: %d %s", code, body())
		}
		if got, _ := c.newcomer(protocol, "/api/v1/pods", testToken); got.code != http.StatusOK {
			t.Errorf("a user beside the proxy: %d %s", got.code, got.body)
		}
	})
}

// TestConnectionsOfServiceAccounts: those of a namespace share what one user may have, since
// whoever may make one may make many. Accounts of kube-system, nodes, components and
// administrators get in even when other users hold all that they may.
func TestConnectionsOfServiceAccounts(t *testing.T) {
	users := map[string]auth.User{}
	add := func(token, name string, groups ...string) string {
		users[token] = auth.User{Name: name, Groups: groups}
		return token
	}
	for i := range 14 {
		add(fmt.Sprint("account", i), auth.ServiceAccountName("team", fmt.Sprint("a", i)), auth.ServiceAccountGroups("team")...)
		add(fmt.Sprint("user", i), fmt.Sprint("user", i))
	}
	ofTheSystem := []string{
		add("kube-system", auth.ServiceAccountName("kube-system", "proxy")), add("node", auth.NodeUserName("n"), auth.Nodes),
		add("scheduler", "system:kube-scheduler"), add("admin", "admin", auth.Masters),
	}
	c := newCluster(t, func(s *setup) {
		s.config.MaxConnections, s.config.Tokens = 64, auth.NewStaticTokens(users)
	})
	for range 32 { // of the 42 that the namespace may have of the 56 that users may
		c.watchAlone("HTTP/2", "account0")
	}
	got, _ := c.newcomer("HTTP/2", "/api/v1/pods", "account0")
	if got.code != http.StatusTooManyRequests || !strings.Contains(string(got.body), `the service account \"team/a0\": 32 of the 42`) {
		t.Fatalf("%d %s", got.code, got.body)
	}
	for i := range 10 {
		c.watchAlone("HTTP/2", fmt.Sprint("account", i+1))
	}
	for i := range 14 {
		got, _ := c.newcomer("HTTP/2", "/api/v1/pods", fmt.Sprint("account", i))
		if got.code != http.StatusTooManyRequests || !strings.Contains(string(got.body), `the service accounts of the namespace \"team\": 42 of the 64`) {
			t.Fatalf("%d %s", got.code, got.body)
		}
		c.watchAlone("HTTP/2", fmt.Sprint("user", i))
	}
	for _, token := range ofTheSystem {
		c.watchAlone("HTTP/2", token)
	}
}

// TestUsersOfTheSystem: names that only begin like those of kube-system are none.
func TestUsersOfTheSystem(t *testing.T) {
	for name, want := range map[string]bool{
		auth.ServiceAccountName("kube-system", "proxy"): true, auth.ServiceAccountName("kube-system", "a:b"): false,
		"system:serviceaccount:kube-system": false, auth.ServiceAccountName("team", "a"): false,
		"system:kube-proxy": true, "system:kubelet": false,
	} {
		if got := ofTheSystem(auth.User{Name: name}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// oneConnection sends requests over a connection of HTTP/1.1; a Transport may open others.
type oneConnection struct {
	conn   net.Conn
	reader *bufio.Reader
}

// RoundTrip implements http.RoundTripper.
func (o *oneConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Write(o.conn); err != nil {
		return nil, err
	}
	return http.ReadResponse(o.reader, r)
}

// TestConnectionsOfTheFirstUser: a connection with requests of many users counts once, as that
// of the first.
func TestConnectionsOfTheFirstUser(t *testing.T) {
	overEach(t, func(t *testing.T, server HTTP2Server, protocol string) {
		c := newCluster(t, threeUsers, func(s *setup) {
			s.config.MaxConnections, s.config.MaxConnectionsPerUser, s.config.HTTP2Server = 20, 1, server
		})
		c.watchAlone(protocol, greedyToken)
		c.client = c.fresh(protocol)
		if protocol == "HTTP/1.1" {
			conn := c.dialHTTP1()
			defer conn.Close()
			c.client = &http.Client{Transport: &oneConnection{conn, bufio.NewReader(conn)}}
		}
		for _, token := range []string{testToken, greedyToken, adminToken, testToken} {
			if got := c.get("/api/v1/pods", "Authorization: Bearer "+token); got.code != http.StatusOK {
				t.Errorf("%d %s", got.code, got.body)
			}
		}
		if got, _ := c.newcomer(protocol, "/api/v1/pods", greedyToken); got.code != http.StatusTooManyRequests ||
			!strings.Contains(string(got.body), "--max-connections-per-user") {
			t.Errorf("%d %s", got.code, got.body)
		}
		if n := c.server.connections.InUse(); n != 2 {
			t.Errorf("%d are held", n)
		}
	})
}

// TestWrongCredentialsKeepNoConnection that a user has given up, however long the client takes
// to read the answer.
func TestWrongCredentialsKeepNoConnection(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.MaxConnections = 10 })
	limit, pipe := c.server.connections, faultnet.NewPipe()
	listener := limit.Listener(pipe)
	open := func() *listen.Conn {
		go pipe.Dial(t.Context(), "tcp", "x")
		conn, err := listener.Accept()
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn.(*listen.Conn)
	}
	hold := func() *listen.Conn {
		conn := open()
		must(t, conn.Hold(listen.Holder{Name: "most"}, false))
		return conn
	}
	given := hold()
	asked := false
	given.OnYield(func() { asked = true })
	given.Idle(time.Now())
	for range 6 {
		hold()
	}
	given.Busy()
	r := httptest.NewRequestWithContext(limit.Context(t.Context(), given), http.MethodGet, "/api/v1/pods", nil)
	r.Header.Set("Authorization", "Bearer wrong")
	answer := httptest.NewRecorder()
	c.server.ServeHTTP(answer, r)
	if answer.Code != http.StatusUnauthorized || !asked {
		t.Fatalf("%d, asked to go: %v", answer.Code, asked)
	}
	for range 10 {
		open()
	}
	if _, err := given.Write([]byte("x")); err == nil {
		t.Error("the connection is kept")
	}
}
