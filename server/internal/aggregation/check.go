package aggregation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/apiregistration"
)

// The reasons of the condition Available that a check itself gives.
const (
	passed      = "Passed"
	failedCheck = "FailedDiscoveryCheck"
)

const (
	// checkTimeout is how long a server may take to describe itself.
	checkTimeout = 5 * time.Second
	// maxDiscovery and maxOpenAPI bound what a server says of itself.
	maxDiscovery = 4 << 20
	maxOpenAPI   = 16 << 20
	// maxAllOpenAPI bounds the OpenAPI v2 of all servers together, before compression:
	// the documents are merged in memory.
	maxAllOpenAPI = 64 << 20
)

// aggregatorUser is the user that asks servers what they serve. The group may do
// everything on every server that trusts this one.
const aggregatorUser = "system:kube-aggregator"

// outcome is what a check has found.
type outcome struct {
	condition apiregistrationv1.APIServiceCondition
	resolved  []string // where the server listens
	at        time.Time
}

// run checks the server until ctx ends.
func (s *Server) run(ctx context.Context) {
	ticker := time.NewTicker(s.of.opts.RetryInterval)
	defer ticker.Stop()
	for {
		if s.isDue(ctx) {
			s.check(ctx)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// isDue reports whether the server has to be asked now: because it did not answer, its
// endpoints have changed, the time has come, or the condition is not what was found.
func (s *Server) isDue(ctx context.Context) bool {
	last := s.last.Load()
	if last == nil || last.condition.Status != apiregistrationv1.ConditionTrue || time.Since(last.at) >= s.of.opts.CheckInterval {
		return true
	}
	if s.of.isOwn(s.gv) {
		return last.condition.Reason == passed
	}
	if last.condition.Reason != passed {
		return true
	}
	addresses, err := s.addresses(ctx)
	return err != nil || !slices.Equal(addresses, last.resolved)
}

// check finds out whether the server answers and what it serves, and writes the condition.
func (s *Server) check(ctx context.Context) {
	found := s.examine(ctx)
	if ctx.Err() != nil {
		return
	}
	last := s.last.Swap(found)
	if last == nil || last.condition.Status != found.condition.Status {
		s.logAvailability(ctx, &found.condition)
		s.of.publish()
	} else {
		found.condition.LastTransitionTime = last.condition.LastTransitionTime
	}
	// Messages may name ports that are others each time, and another server may find
	// something else: such differences are not written more often than a server that
	// answers is checked.
	urgent := last == nil || last.condition.Status != found.condition.Status || last.condition.Reason != found.condition.Reason
	if !differs(conditionOf(s.object.Load()), &found.condition) || !urgent && time.Since(s.written) < s.of.opts.CheckInterval {
		return
	}
	if err := s.writeCondition(ctx, found.condition); err != nil {
		if ctx.Err() == nil {
			s.of.opts.Logger.Warn("the condition of an APIService cannot be written", "name", s.name(), "error", err)
		}
		s.written = time.Time{} // so that it is tried again
		return
	}
	s.written = time.Now()
}

// logAvailability says that the server answers from now on, or does not. The requests that fail
// because of it are not logged one by one.
func (s *Server) logAvailability(ctx context.Context, c *apiregistrationv1.APIServiceCondition) {
	level := slog.LevelInfo
	if c.Status != apiregistrationv1.ConditionTrue {
		level = slog.LevelWarn
	}
	s.of.opts.Logger.Log(ctx, level, "availability of an APIService", "name", s.name(), "available", c.Status, "reason", c.Reason, "message", c.Message)
}

func (s *Server) examine(ctx context.Context) *outcome {
	found := &outcome{at: time.Now()}
	if s.of.isOwn(s.gv) {
		found.condition = apiregistration.Local()
		found.condition.Message = "this server serves the group and version itself: spec.service has no effect"
		return found
	}
	found.condition = apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: passed, Message: "all checks passed",
	}
	var err error
	if found.resolved, err = s.addresses(ctx); err == nil {
		err = s.describe(ctx)
	}
	if err == nil {
		return found
	}
	found.condition.Status, found.condition.Reason, found.condition.Message = apiregistrationv1.ConditionFalse, failedCheck, err.Error()
	var none *unresolved
	if errors.As(err, &none) {
		found.condition.Reason, found.condition.Message = none.reason, none.message
	}
	return found
}

// get asks the server for a document of at most limit bytes. notModified is true if it is the one with the given
// tag.
func (s *Server) get(ctx context.Context, path, accept, tag string, limit int) (body []byte, newTag string, notModified bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server"+path, nil)
	if err != nil {
		return nil, "", false, err
	}
	r.Header.Set("Accept", accept)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	transport.SetAuthProxyHeaders(r, aggregatorUser, "", []string{auth.Masters}, nil)
	response, err := s.RoundTripper(Short).RoundTrip(r)
	if err != nil {
		var none *unresolved
		if errors.As(err, &none) {
			return nil, "", false, err
		}
		return nil, "", false, fmt.Errorf("failing or missing response from https://%s.svc%s: %w", s.host(), path, err)
	}
	defer func() { _ = response.Body.Close() }() // nothing depends on it
	switch {
	case tag != "" && response.StatusCode == http.StatusNotModified:
		return nil, tag, true, nil
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, "", false, fmt.Errorf("failing or missing response from https://%s.svc%s: bad status: %d", s.host(), path, response.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err == nil && len(body) > limit {
		err = fmt.Errorf("the answer to %s is longer than %d bytes", path, limit)
	}
	return body, response.Header.Get("ETag"), false, err
}

func (s *Server) host() string {
	ref := s.object.Load().Spec.Service
	return fmt.Sprintf("%s.%s", ref.Name, ref.Namespace)
}

// getJSON is get of a document that is decoded.
func (s *Server) getJSON(ctx context.Context, path string, into any) error {
	body, _, _, err := s.get(ctx, path, resource.MediaTypeJSON, "", maxDiscovery)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer to %s cannot be read: %w", path, err)
	}
	return nil
}

func conditionOf(obj *apiregistrationv1.APIService) *apiregistrationv1.APIServiceCondition {
	for i := range obj.Status.Conditions {
		if c := &obj.Status.Conditions[i]; c.Type == apiregistrationv1.Available {
			return c
		}
	}
	return nil
}

// differs reports whether a condition says something else, apart from its time.
func differs(has, want *apiregistrationv1.APIServiceCondition) bool {
	return has == nil || has.Status != want.Status || has.Reason != want.Reason || has.Message != want.Message
}

// writeCondition sets the condition Available of the APIService.
func (s *Server) writeCondition(ctx context.Context, want apiregistrationv1.APIServiceCondition) error {
	return s.of.writeCondition(ctx, s.object.Load(), want)
}

// correctLocal writes the condition of the APIServices without a Service that have another one:
// those that had a Service before, or that a user wrote. Those that are created have it.
func (a *Aggregator) correctLocal(ctx context.Context, objects map[string]*apiregistrationv1.APIService) error {
	local := apiregistration.Local()
	var failed error
	for _, obj := range objects {
		if obj.Spec.Service == nil && differs(conditionOf(obj), &local) {
			failed = errors.Join(failed, a.writeCondition(ctx, obj, local))
		}
	}
	return failed
}

// writeCondition sets the condition Available of an APIService that is still the one that was
// seen, and leads where it led.
func (a *Aggregator) writeCondition(ctx context.Context, seen *apiregistrationv1.APIService, want apiregistrationv1.APIServiceCondition) error {
	_, err := a.objects.UpdateStatus(ctx, "", seen.Name, func(current resource.Object) (resource.Object, error) {
		if current == nil || current.GetUID() != seen.UID {
			return nil, apierrors.NewNotFound(apiregistrationv1.Resource("apiservices"), seen.Name)
		}
		changed := current.DeepCopyObject().(*apiregistrationv1.APIService)
		if (changed.Spec.Service == nil) != (seen.Spec.Service == nil) {
			return current, nil
		}
		if has := conditionOf(changed); has != nil {
			if has.Status == want.Status {
				want.LastTransitionTime = has.LastTransitionTime
			}
			*has = want
		} else {
			changed.Status.Conditions = append(changed.Status.Conditions, want)
		}
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
