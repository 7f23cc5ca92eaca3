package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// cleanupLimit bounds what is left to do when a run ends, also by a signal.
func (p *pace) cleanupLimit() time.Duration { return 2 * p.limit() }

// runName returns what the names of a run's namespaces begin with.
func runName() string { return "levelwire-verify-" + strings.ToLower(rand.Text()[:6]) }

// newEnv returns what checks in a namespace work with.
func newEnv(ctx context.Context, t *testedServer, namespace string) *Env {
	return &Env{ctx: ctx, server: t, namespace: namespace, made: map[string]bool{}}
}

// prepareNamespace makes a namespace and waits until what a cluster puts into
// each is there. Servers without namespaces need none.
func (e *Env) prepareNamespace() error {
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + e.namespace + `"}}`
	a, err := e.exchange(e.ctx, request{method: http.MethodPost, path: "/api/v1/namespaces", body: body})
	switch {
	case err != nil:
		return err
	case a.code == http.StatusNotFound:
		return nil
	case a.code == http.StatusTooManyRequests:
		return busy(request{method: http.MethodPost, path: "/api/v1/namespaces"}, a)
	case a.code != http.StatusCreated:
		return fmt.Errorf("the namespace %s cannot be created: %s", e.namespace, a)
	}
	a, err = e.exchange(e.ctx, request{path: "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"})
	if err != nil || a.code != http.StatusOK {
		return err
	}
	return e.until(func() (bool, error) {
		a, err := e.exchange(e.ctx, request{path: e.configMaps() + "/kube-root-ca.crt"})
		return err == nil && a.code == http.StatusOK, err
	})
}

// until asks now and then whether something has come true.
func (e *Env) until(ask func() (bool, error)) error {
	deadline := time.Now().Add(longestLimit)
	for {
		ok, err := ask()
		switch {
		case ok || err != nil:
			return err
		case time.Now().After(deadline):
			if err := e.judge(e.ctx, longestLimit); err != nil {
				return err
			}
			return fmt.Errorf("waited %s in vain", longestLimit)
		}
		if err := sleep(e.ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// empty deletes what a check has made and left.
func (e *Env) empty(ctx context.Context) error {
	e.mu.Lock()
	paths := slices.Sorted(maps.Keys(e.made))
	e.mu.Unlock()
	var errs []error
	for i, path := range paths {
		r := request{method: http.MethodDelete, path: path + "?gracePeriodSeconds=0"}
		a, err := e.exchange(ctx, r)
		if err != nil && ctx.Err() != nil {
			return errors.Join(append(errs, fmt.Errorf("%d objects are left: %w", len(paths)-i, err))...)
		}
		switch {
		case err != nil:
		case a.code == http.StatusTooManyRequests:
			err = busy(r, a)
		case a.code >= 300 && a.code != http.StatusNotFound:
			err = fmt.Errorf("%s cannot be deleted: %s", path, a)
		}
		errs = append(errs, err)
		e.forget(path)
	}
	return errors.Join(errs...)
}

// namespaceGone is how long a cluster has to delete an empty namespace before
// it is taken for one without a controller that does.
const namespaceGone = 3 * time.Second

// removeNamespace deletes the namespace, and finishes the deletion itself on
// servers without a controller for that. It uses ctx, as the check's has ended.
func (e *Env) removeNamespace(ctx context.Context) error {
	e.ctx = ctx
	path := "/api/v1/namespaces/" + e.namespace
	a, err := e.exchange(ctx, request{method: http.MethodDelete, path: path})
	if err != nil || a.code == http.StatusNotFound {
		return err
	}
	deadline := time.Now().Add(namespaceGone)
	for {
		a, err := e.exchange(ctx, request{path: path})
		if err != nil || a.code == http.StatusNotFound {
			return err
		}
		if time.Now().After(deadline) || !e.hasController() {
			break
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	// Without a controller, what the cluster puts into each namespace stays.
	for _, put := range []string{"/configmaps/kube-root-ca.crt", "/serviceaccounts/default"} {
		if _, err := e.exchange(ctx, request{method: http.MethodDelete, path: path + put}); err != nil {
			return err
		}
	}
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + e.namespace + `"},"spec":{"finalizers":[]}}`
	a, err = e.exchange(ctx, request{method: http.MethodPut, path: path + "/finalize", body: body})
	if err == nil && a.code != http.StatusOK && a.code != http.StatusNotFound && a.code != http.StatusConflict {
		err = fmt.Errorf("the namespace %s cannot be removed: %s", e.namespace, a)
	}
	return err
}

// hasController says whether this looks like a cluster in which a controller
// empties namespaces: one that puts an account into each.
func (e *Env) hasController() bool {
	a, err := e.exchange(e.ctx, request{path: "/api/v1/namespaces/default/serviceaccounts/default"})
	return err == nil && a.code == http.StatusOK
}
