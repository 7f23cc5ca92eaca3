package quiet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// page gets an object and lists all by page.
func (c *Clients) page(ctx context.Context, u *user) error {
	const limit = 200
	return every(ctx, time.Second, func() {
		next := ""
		for page := 0; ; page++ {
			var list struct {
				Metadata struct{ Continue string } `json:"metadata"`
				Items    []object                  `json:"items"`
			}
			begun := time.Now()
			err := u.do(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&continue=%s", u.access.Lists, limit, url.QueryEscape(next)), "", &list)
			c.note(ctx, Pages, begun, err)
			if err != nil {
				return
			}
			if page == 0 && len(list.Items) > 0 {
				begun := time.Now()
				err := u.do(ctx, http.MethodGet, u.access.Lists+"/"+list.Items[0].Metadata.Name, "", &object{})
				c.note(ctx, Pages, begun, err)
			}
			if next = list.Metadata.Continue; next == "" {
				return
			}
		}
	})
}

// written is what the writer has had acknowledged.
type written struct {
	// began is when the request of a version began that the informer has not seen yet.
	began map[uint64]time.Time
	// held is the objects that exist, with their versions, and unsure those of a write that
	// failed: it may have been done or not.
	held   map[string]uint64
	unsure map[string]bool
}

const writtenPrefix = "written-"

func (a Access) configMaps() string { return "/api/v1/namespaces/" + a.Namespace + "/configmaps" }

// write creates an object, updates another one and deletes a third.
func (c *Clients) write(ctx context.Context, u *user) error {
	c.mu.Lock()
	c.unsure = map[string]bool{}
	c.mu.Unlock()
	const updateAfter, deleteAfter = 20, 40
	path, n := u.access.configMaps(), 0
	body := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d","padding":%q}}`, name, n, strings.Repeat("x", 500))
	}
	name := func(n int) string { return writtenPrefix + strconv.Itoa(n) }
	return every(ctx, 100*time.Millisecond, func() {
		c.change(ctx, u, http.MethodPost, path, name(n), body(name(n)))
		if old := n - updateAfter; old >= 0 {
			c.change(ctx, u, http.MethodPut, path+"/"+name(old), name(old), body(name(old)))
		}
		if old := n - deleteAfter; old >= 0 {
			c.change(ctx, u, http.MethodDelete, path+"/"+name(old), name(old), "")
		}
		n++
	})
}

// change makes a write and records what it has led to. An object whose last write failed
// is left alone.
func (c *Clients) change(ctx context.Context, u *user, method, path, name, body string) {
	c.mu.Lock()
	unsure := c.unsure[name]
	c.mu.Unlock()
	if unsure {
		return
	}
	begun := time.Now()
	var answer object
	err := u.do(ctx, method, path, body, &answer)
	c.note(ctx, Writes, begun, err)
	version, _ := strconv.ParseUint(answer.Metadata.ResourceVersion, 10, 64) // 0 for a deletion's answer
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.unsure[name] = true
	case method == http.MethodDelete:
		delete(c.held, name)
	default:
		c.held[name] = version
		c.began[version] = begun
	}
}
