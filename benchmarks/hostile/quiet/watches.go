package quiet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// inform runs an informer of the clients' namespace.
func (c *Clients) inform(ctx context.Context, u *user) error {
	config := &rest.Config{Host: u.access.URL, BearerToken: u.token, TLSClientConfig: rest.TLSClientConfig{CAData: u.access.CA}}
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	defer api.CloseIdleConnections()
	factory := informer.NewFactory(api, informer.Options{Logger: slog.New(slog.DiscardHandler)})
	i := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: u.access.Namespace})
	if _, err := i.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		Add:    func(o *corev1.ConfigMap, _ bool) { c.saw(ctx, o, true) },
		Update: func(_, o *corev1.ConfigMap) { c.saw(ctx, o, true) },
		Delete: func(o *corev1.ConfigMap, _ bool) { c.saw(ctx, o, false) },
	}, informer.HandlerOptions{}); err != nil {
		return err
	}
	return i.Run(ctx)
}

// saw records an event of the informer. Its latency is measured if the write's answer was
// there first; otherwise nothing was waited for.
func (c *Clients) saw(ctx context.Context, o *corev1.ConfigMap, exists bool) {
	if !strings.HasPrefix(o.Name, writtenPrefix) {
		return
	}
	version, _ := strconv.ParseUint(o.ResourceVersion, 10, 64) // 0 is no version
	c.mu.Lock()
	if exists {
		c.seen[o.Name] = version
	} else {
		delete(c.seen, o.Name)
	}
	begun, ok := c.began[version]
	delete(c.began, version)
	c.mu.Unlock()
	if ok && exists {
		c.note(ctx, Informer, begun, nil)
	}
}

// awaitEqual waits until the informer holds what was acknowledged, and returns how many
// objects differ when it is over.
func (c *Clients) awaitEqual(ctx context.Context) (lost int) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	_ = every(ctx, 50*time.Millisecond, func() {
		if lost = c.differences(); lost == 0 {
			cancel()
		}
	})
	return lost
}

func (c *Clients) differences() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, version := range c.held {
		if !c.unsure[name] && c.seen[name] != version {
			n++
		}
	}
	for name := range c.seen {
		if _, ok := c.held[name]; !ok && !c.unsure[name] {
			n++
		}
	}
	return n
}

// probe updates an object and waits for the event, again and again.
func (c *Clients) probe(ctx context.Context, u *user) error {
	const name = "probe"
	path := u.access.configMaps()
	body := func(n int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d"}}`, name, n)
	}
	var made object
	if err := u.do(ctx, http.MethodPost, path, body(0), &made); err != nil {
		return err
	}
	events := make(chan string, 100)
	watcher, err := u.access.user(Probe)
	if err != nil {
		return err
	}
	go c.follow(ctx, watcher, path+"?watch=true&fieldSelector=metadata.name%3D"+name, made.Metadata.ResourceVersion, events)
	n := 0
	return every(ctx, 200*time.Millisecond, func() {
		n++
		begun := time.Now()
		err := u.do(ctx, http.MethodPut, path+"/"+name, body(n), &object{})
		limit := time.After(answerLimit)
		for seen := false; err == nil && !seen; {
			select {
			case event := <-events:
				seen = event == strconv.Itoa(n)
			case <-limit:
				err = errors.New("the event of a write did not come")
			case <-ctx.Done():
				return
			}
		}
		c.note(ctx, Probe, begun, err)
	})
}

// follow watches from a version on, and begins again where a watch ends. The server may end
// one after half an hour; before five minutes it is an error.
func (c *Clients) follow(ctx context.Context, u *user, path, version string, events chan<- string) {
	for ctx.Err() == nil {
		begun := time.Now()
		err := func() error {
			answer, err := u.open(ctx, http.MethodGet, path+"&resourceVersion="+version, "")
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			for stream := json.NewDecoder(answer.Body); ; {
				var event struct {
					Type   string
					Object object
				}
				if err := stream.Decode(&event); err != nil {
					return fmt.Errorf("the watch has ended: %w", err)
				}
				if event.Type == "ERROR" {
					return errors.New("the watch has failed")
				}
				version = event.Object.Metadata.ResourceVersion
				select {
				case events <- event.Object.Data["n"]:
				case <-ctx.Done():
				}
			}
		}()
		if time.Since(begun) < 5*time.Minute {
			c.mu.Lock()
			if ctx.Err() == nil {
				c.measures[Probe].Errors++
				c.measures[Probe].Last = err.Error()
			}
			c.mu.Unlock()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
