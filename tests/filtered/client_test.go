package filtered

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/levelwire/levelwire/internal/filteredlist"
	"github.com/levelwire/levelwire/tests/workload"
)

// item is one thing that a client has done or got. The checker takes them in their order.
type item struct {
	what itemKind
	at   time.Time // when the request began, or when the rest had arrived

	// revision is the version that a watch was asked for (0 with initial events), or that of
	// an event, a bookmark or a list.
	revision int64
	// rewound says that the client went back to a bookmark, and to what it had then.
	rewound bool
	// end says that a bookmark ends the initial events, that a page is the last of its list;
	// first, that it is the first one.
	end, first bool
	// latest says that a list had to be consistent; aside, that the client does not go on from it.
	latest, aside bool

	changed event // of a watch
	value   string
	objects map[string]got // of a page
	begun   time.Time      // when a page was asked for
}

// got is an object as a client has got it.
type got struct {
	revision int64
	value    string
}

type itemKind int

const (
	opened itemKind = iota
	changedObject
	bookmark
	page
)

// The forms in which a client reads.
const (
	asJSON      = "application/json"
	asMetadata  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asProtobuf  = "application/vnd.kubernetes.protobuf"
	asWebSocket = "WebSocket"
)

// client reads what its user may see, until its context ends: it lists, watches, resumes,
// and goes back to versions that it had before. It notes everything and judges nothing.
type client struct {
	selection
	name    string
	url     string
	http    *http.Client
	dialer  *websocket.Dialer
	form    string
	honest  bool         // it takes no version back, as ours; others take that of any event
	calm    *atomic.Bool // what it has open stays open
	random  *rand.Rand
	failure func(format string, args ...any)

	version   int64   // to resume from
	partial   bool    // it has a part of the initial state
	bookmarks []int64 // the latest ones
	seenAsKey string  // the header by which the server names the user

	refused atomic.Int64 // requests and watches, but for 410
	expired atomic.Int64

	mu    sync.Mutex
	items []item
}

func (c *client) note(i item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items = append(c.items, i)
}

// take returns what has come since it was called before.
func (c *client) take() []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := c.items
	c.items = nil
	return items
}

// run reads until ctx ends.
func (c *client) run(ctx context.Context) {
	list := true
	for ctx.Err() == nil {
		n := c.random.IntN(100)
		if c.calm.Load() {
			n = 99
		}
		var err error
		switch {
		case n < 15 || list && n%2 == 0:
			err = c.watch(ctx, 0, false)
		case n < 30 || list:
			err = c.list(ctx)
		case n < 40 && len(c.bookmarks) > 0:
			err = c.listExactly(ctx, pick(c.random, c.bookmarks))
		case n < 55 && len(c.bookmarks) > 0:
			err = c.watch(ctx, pick(c.random, c.bookmarks), true)
		default:
			err = c.watch(ctx, c.version, false)
		}
		var refusal *refusedError
		switch {
		case err == nil:
			list = c.partial || c.version == 0
		case errors.As(err, &refusal) && refusal.code == http.StatusGone:
			c.expired.Add(1)
			list = true
		default:
			c.refused.Add(1)
			list = c.partial || c.version == 0
			workload.Wait(ctx, time.Duration(c.random.Int64N(int64(100*time.Millisecond))))
		}
	}
}

// refusedError is the Status of an answer, or of an event.
type refusedError struct {
	code    int
	message string
}

func (e *refusedError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

// query has the parameters of every request.
func (c *client) query(visible string) url.Values {
	q := url.Values{filteredlist.Parameter: {visible}}
	if c.color != "" {
		q.Set("labelSelector", colorKey+"="+c.color)
	}
	if c.half {
		q.Set("shardSelector", "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')")
	}
	return q
}

func (c *client) header() http.Header {
	h := http.Header{"Authorization": {"Bearer " + c.identity.token}}
	if c.form != asWebSocket {
		h.Set("Accept", c.form)
	}
	if c.identity.as != "" {
		h.Set("Impersonate-User", c.identity.as)
	}
	return h
}

// get makes a request, and returns the answer if it is a success.
func (c *client) get(ctx context.Context, q url.Values, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+c.kind.path("")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	return answer, c.judge(answer)
}

// judge returns what is wrong with an answer, and closes it then.
func (c *client) judge(answer *http.Response) error {
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusSwitchingProtocols {
		message, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // as much of it as there is
		_ = answer.Body.Close()
		return &refusedError{answer.StatusCode, string(message)}
	}
	named := answer.Header.Get(filteredlist.Header)
	if c.seenAsKey == "" {
		c.seenAsKey = named
	}
	if named == "" || named == filteredlist.All || named != c.seenAsKey {
		c.failure("%s: the user is called %q, before %q", c.name, named, c.seenAsKey)
	}
	return nil
}

// list lists, in pages or not, consistently or not.
func (c *client) list(ctx context.Context) error {
	q, latest := c.query(filteredlist.Watch), true
	switch c.random.IntN(4) {
	case 0:
		q.Set("limit", "4")
	case 1:
		q.Set("resourceVersion", "0")
		latest = false
	case 2:
		if c.version > 0 {
			q.Set("resourceVersion", fmt.Sprint(c.version))
			q.Set("resourceVersionMatch", "NotOlderThan")
			latest = false
		}
	}
	version, err := c.pages(ctx, q, latest, false)
	if err == nil {
		c.version, c.partial = version, false
	}
	return err
}

// listExactly lists at a version of the past.
func (c *client) listExactly(ctx context.Context, version int64) error {
	q := c.query(filteredlist.Watch)
	q.Set("resourceVersion", fmt.Sprint(version))
	q.Set("resourceVersionMatch", "Exact")
	if c.random.IntN(2) == 0 {
		q.Set("limit", "3")
	}
	if at, err := c.pages(ctx, q, false, true); err != nil || at != version {
		if err == nil {
			c.failure("%s: a list at exactly %d is at %d", c.name, version, at)
		}
		return err
	}
	return nil
}

// pages gets all pages of a list, and returns its version.
func (c *client) pages(ctx context.Context, q url.Values, latest, aside bool) (int64, error) {
	for version, first := int64(0), true; ; first = false {
		begun := time.Now()
		header := c.header()
		if c.form == asWebSocket {
			header.Set("Accept", asJSON)
		}
		if c.form == asMetadata {
			header.Set("Accept", strings.Replace(asMetadata, "PartialObjectMetadata", "PartialObjectMetadataList", 1))
		}
		limited, cancel := context.WithTimeout(ctx, operation) //passes: the server may be gone, and is asked again
		answer, err := c.get(limited, q, header)
		var l objectList
		if err == nil {
			l, err = decodeList(answer.Body, header.Get("Accept"))
			_ = answer.Body.Close()
		}
		cancel()
		if err != nil {
			return 0, err
		}
		if !first && l.version != version {
			c.failure("%s: a list at %d goes on at %d", c.name, version, l.version)
		}
		version = l.version
		c.note(item{what: page, at: time.Now(), revision: version, begun: begun, latest: latest, aside: aside, first: first, end: l.next == "", objects: l.objects})
		if l.next == "" {
			return version, nil
		}
		latest = false // the version is that of the first page
		q.Set("continue", l.next)
		q.Del("resourceVersion")
		q.Del("resourceVersionMatch")
	}
}

// watch follows events from a version, or from initial ones if it is 0, until the server or
// the client ends it.
func (c *client) watch(ctx context.Context, version int64, rewound bool) error {
	q := c.query(filteredlist.True)
	q.Set("watch", "1")
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", fmt.Sprint(2+c.random.IntN(4)))
	if version == 0 {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		q.Set("resourceVersion", fmt.Sprint(version))
	}
	if c.random.IntN(3) == 0 && !c.calm.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(time.Second))))
		defer cancel()
	}
	begun := time.Now()
	next, end, err := c.open(ctx, q)
	if err != nil {
		return err
	}
	defer end()
	c.note(item{what: opened, at: begun, revision: version, rewound: rewound})
	c.version, c.partial = version, version == 0
	highest := version
	for {
		i, err := next()
		if err != nil {
			var refusal *refusedError
			if errors.As(err, &refusal) {
				return err
			}
			return nil // cut
		}
		i.at = time.Now()
		c.note(i)
		highest = max(highest, i.revision)
		if i.what == bookmark {
			c.partial = c.partial && !i.end
			c.bookmarks = append(c.bookmarks, i.revision)
			c.bookmarks = c.bookmarks[max(0, len(c.bookmarks)-8):]
		}
		switch {
		case c.partial: // a client that has a part of the state knows no version yet
		case c.honest:
			c.version = highest
		default:
			c.version = i.revision
		}
	}
}

// open opens a watch.
func (c *client) open(ctx context.Context, q url.Values) (next func() (item, error), end func(), err error) {
	if c.form != asWebSocket {
		header := c.header()
		if c.form == asProtobuf {
			header.Set("Accept", asProtobuf+";stream=watch")
		}
		answer, err := c.get(ctx, q, header)
		if err != nil {
			return nil, nil, err
		}
		return decoder(answer.Body, c.form), func() { _ = answer.Body.Close() }, nil
	}
	conn, answer, err := c.dialer.DialContext(ctx, "wss"+strings.TrimPrefix(c.url, "https")+c.kind.path("")+"?"+q.Encode(), c.header())
	if err != nil {
		if answer != nil {
			return nil, nil, c.judge(answer)
		}
		return nil, nil, err
	}
	if err := c.judge(answer); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return func() (item, error) {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return item{}, err
		}
		return decodeJSONEvent(message)
	}, func() { stop(); _ = conn.Close() }, nil
}

// newClients makes clients of all users and forms.
func newClients(t *testing.T, h *host, address string, calm *atomic.Bool, seed uint64, failure func(string, ...any)) (clients []*client) {
	t.Helper()
	for n, i := range identities {
		for m, form := range []string{asJSON, asProtobuf, asMetadata, asWebSocket} {
			c := &client{
				selection: selection{reader: reader{i, secrets}}, url: "https://" + address, form: form, honest: (n+m)%2 == 0, calm: calm,
				random: rand.New(rand.NewPCG(seed, uint64(10*n+m))), failure: failure,
			}
			if form != asProtobuf && (n+m)%3 == 0 { // custom resources have no protobuf
				c.kind = widgets
			}
			switch (n + m) % 5 {
			case 1:
				c.color = "red"
			case 2:
				c.half = true
			}
			transport := h.transport(t, m%2 == n%2)
			t.Cleanup(transport.CloseIdleConnections)
			c.http = &http.Client{Transport: transport}
			c.dialer = &websocket.Dialer{TLSClientConfig: h.tls(t), HandshakeTimeout: operation}
			c.name = fmt.Sprintf("%s (as %q), %s, %s, HTTP/2 %t, color %q, shard %t", i.token, i.as, c.kind.plural, strings.ReplaceAll(form, "application/", ""), m%2 == n%2, c.color, c.half)
			clients = append(clients, c)
		}
	}
	return clients
}

// sorted is for messages.
func sorted(view map[string]int64) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(view)) {
		out = append(out, fmt.Sprintf("%s@%d", key, view[key]))
	}
	return out
}
